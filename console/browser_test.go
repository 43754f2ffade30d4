package console

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"remit/redisstore"
)

// browser keeps cookies as a browser does, follows no redirect by itself, and reads pages.
type browser struct {
	t       *testing.T
	base    string
	headers map[string]string
	cookies map[string]*http.Cookie
}

func (w *world) browser(t *testing.T) *browser {
	return &browser{t: t, base: w.url, headers: map[string]string{}, cookies: map[string]*http.Cookie{}}
}

// as returns a browser that is signed in with the key of this role.
func (w *world) as(t *testing.T, role redisstore.Role) *browser {
	t.Helper()
	b := w.browser(t)
	b.post(Prefix, "api_key", w.keys[role]).want(http.StatusSeeOther)
	return b
}

// answer is a response, parsed if it is a page.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	text   string
	page   *html.Node
}

func (b *browser) get(path string) *answer {
	b.t.Helper()
	return b.ask(http.MethodGet, path, nil)
}

// post sends a form of names and values, as they are.
func (b *browser) post(path string, pairs ...string) *answer {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return b.ask(http.MethodPost, path, form)
}

func (b *browser) ask(method, path string, form url.Values) *answer {
	b.t.Helper()
	request := must(http.NewRequest(method, b.base+path, strings.NewReader(form.Encode())))(b.t)
	if form != nil {
		request.Header.Set("Content-Type", formType)
	}
	for name, value := range b.headers {
		if name == "Host" {
			request.Host = value
		}
		request.Header.Set(name, value)
	}
	for _, cookie := range b.cookies {
		request.AddCookie(cookie)
	}
	answered := must(http.DefaultTransport.RoundTrip(request))(b.t)
	defer answered.Body.Close()
	for _, cookie := range answered.Cookies() {
		if b.cookies[cookie.Name] = cookie; cookie.Value == "" {
			delete(b.cookies, cookie.Name)
		}
	}
	text := must(io.ReadAll(answered.Body))(b.t)
	a := &answer{t: b.t, what: request.Method + " " + request.URL.RequestURI(), status: answered.StatusCode, header: answered.Header, text: string(text)}
	if strings.HasPrefix(answered.Header.Get("Content-Type"), "text/html") {
		a.page = must(html.Parse(strings.NewReader(a.text)))(b.t)
	}
	return a
}

func (b *browser) follow(a *answer) *answer {
	b.t.Helper()
	return b.get(a.want(http.StatusSeeOther).header.Get("Location"))
}

// send fills in the form of this page that is sent to this path, and follows where that leads, unless the page stays.
func (b *browser) send(on *answer, path string, pairs ...string) *answer {
	b.t.Helper()
	fields := on.form(path)
	for i := 0; i < len(pairs); i += 2 {
		fields.Set(pairs[i], pairs[i+1])
	}
	sent := b.ask(http.MethodPost, path, fields)
	if sent.status >= http.StatusBadRequest {
		return sent
	}
	return b.follow(sent)
}

// csrf is what every form of a signed-in browser carries.
func (b *browser) csrf() string {
	b.t.Helper()
	return b.get(Prefix).form(Prefix + "/sign-out").Get("csrf")
}

func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d, want %d: %s", a.what, a.status, status, a.words())
	}
	return a
}

func (a *answer) says(texts ...string) *answer {
	a.t.Helper()
	for _, text := range texts {
		wantContains(a.t, a.what, a.words(), text)
	}
	return a
}

func (a *answer) saysNot(texts ...string) *answer {
	a.t.Helper()
	for _, text := range texts {
		if strings.Contains(a.words(), text) {
			a.t.Errorf("%s says %q: %s", a.what, text, a.words())
		}
	}
	return a
}
