package console

import (
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
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

// elements yields the elements of a page with this name, "" for all.
func (a *answer) elements(name string) iter.Seq[*html.Node] {
	a.t.Helper()
	if a.page == nil {
		a.t.Fatalf("%s: %d is no page", a.what, a.status)
	}
	return func(yield func(*html.Node) bool) {
		for node := range a.page.Descendants() {
			if node.Type == html.ElementNode && (name == "" || node.Data == name) && !yield(node) {
				return
			}
		}
	}
}

// words returns the text of a page with single spaces.
func (a *answer) words() string {
	if a.page == nil {
		return a.text
	}
	return textOf(a.page)
}

func textOf(node *html.Node) string {
	var text strings.Builder
	for n := range node.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "title" {
			text.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// form returns the fields of the first form that is sent to this path.
func (a *answer) form(path string) url.Values {
	a.t.Helper()
	return fieldsOf(a.formNode(path, "post"))
}

func (a *answer) hasForm(path string) bool {
	return slices.ContainsFunc(slices.Collect(a.elements("form")), func(form *html.Node) bool { return attribute(form, "action") == path })
}

func fieldsOf(form *html.Node) url.Values {
	fields := url.Values{}
	for n := range form.Descendants() {
		if n.Type != html.ElementNode || attribute(n, "name") == "" {
			continue
		}
		switch n.Data {
		case "input":
			if kind := attribute(n, "type"); kind != "checkbox" && kind != "radio" || has(n, "checked") {
				fields.Set(attribute(n, "name"), attribute(n, "value"))
			}
		case "select":
			fields.Set(attribute(n, "name"), selected(n))
		case "textarea":
			text := ""
			for part := range n.Descendants() {
				text += part.Data
			}
			fields.Set(attribute(n, "name"), text)
		}
	}
	return fields
}

func selected(list *html.Node) (chosen string) {
	isFirst := true
	for n := range list.Descendants() {
		if n.Data == "option" && (isFirst || has(n, "selected")) {
			chosen, isFirst = attribute(n, "value"), false
		}
	}
	return chosen
}

func (a *answer) links() (to []string) {
	a.t.Helper()
	for link := range a.elements("a") {
		to = append(to, attribute(link, "href"))
	}
	return to
}
