package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"remit/redisstore"
)

// TestEveryPageWithEveryRole drives each page of the table by each role that it is for, and looks at the forms that it offers.
func TestEveryPageWithEveryRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids, needed := w.sample(), map[string]redisstore.Role{}
	for _, p := range w.console.pages() {
		if p.open == nil && p.method != get {
			needed[ids.path(p.path)] = p.role
		}
	}
	for _, role := range []redisstore.Role{viewer, operator, admin} {
		b := w.as(t, role)
		csrf := b.csrf()
		for _, p := range w.console.pages() {
			if p.open != nil || p.stream || rank(role) < rank(p.role) {
				continue
			}
			got := b.ask(p.method, ids.path(p.path), map[string][]string{"csrf": {csrf}})
			if got.status == http.StatusForbidden || got.status >= 500 {
				t.Errorf("%s as %s: %d %s", got.what, role, got.status, got.words())
			}
			wantEqual(t, p.path+" lets a viewer change something", p.method != get && p.role == viewer, false)
			if p.method != get || got.page == nil {
				continue
			}
			for form := range got.elements("form") {
				if least := needed[attribute(form, "action")]; attribute(form, "method") == "post" && least != "" && rank(role) < rank(least) {
					t.Errorf("%s as %s offers what needs the role %s: %s", got.what, role, least, attribute(form, "action"))
				}
			}
		}
	}
}

func TestAChangeWantsTheTokenOfItsSignIn(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, admin)
	other := w.as(t, admin).csrf()
	tokens := map[string]string{"none": "", "of another sign-in": other, "cut off": b.csrf()[:20]}
	before := w.settled()
	for _, p := range w.console.pages() {
		if p.method == get || p.open != nil {
			continue
		}
		for name, csrf := range tokens {
			wantEqual(t, p.path+" with a token that is "+name, b.post(ids.path(p.path), "csrf", csrf).status, http.StatusForbidden)
		}
	}
	wantEqual(t, "what changes without a token change", difference(before, w.stored()), "")
}

func TestAnotherSitesPageChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	own := w.url
	for name, test := range map[string]struct {
		headers map[string]string
		signsIn bool
	}{
		"a page of its own":                  {map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "null"}, true},
		"a page of its own, an old browser":  {map[string]string{"Origin": own}, true},
		"a page behind another name":         {map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "https://public.example"}, false},
		"a page of another site":             {map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": own}, false},
		"a page of another port":             {map[string]string{"Sec-Fetch-Site": "same-site"}, false},
		"another site in an old browser":     {map[string]string{"Origin": "https://evil.example"}, false},
		"a sandboxed frame in an old one":    {map[string]string{"Origin": "null"}, false},
		"a link or a bookmark, not a form":   {map[string]string{"Sec-Fetch-Site": "none"}, false},
		"its own name, over another scheme":  {map[string]string{"Origin": strings.Replace(own, "http:", "https:", 1)}, false},
		"what is no browser and has no site": {nil, true},
	} {
		b := w.browser(t)
		b.headers = test.headers
		got := b.post(Prefix, "api_key", w.keys[viewer])
		wantEqual(t, name+" signs in", got.status == http.StatusSeeOther, test.signsIn)
		wantEqual(t, name+" gets a cookie", len(b.cookies) > 0, test.signsIn)
	}
}

func TestWhatIsNoSmallFormIsRefusedUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.browser(t)
	b.post(Prefix, "api_key", strings.Repeat("x", mostForm)).want(http.StatusRequestEntityTooLarge)
	b.ask(http.MethodPost, Prefix, map[string][]string{"a": make([]string, mostFields+2)}).want(http.StatusRequestEntityTooLarge)
	b.headers["Content-Type"] = "text/plain"
	b.post(Prefix, "api_key", w.keys[viewer]).want(http.StatusUnsupportedMediaType)
}

func TestTwoCookiesOfANameAreNoSignIn(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	b.get(agents).want(http.StatusOK)
	b.headers["Cookie"] = signInCookie + "=" + w.as(t, admin).cookies[signInCookie].Value
	b.get(agents).want(http.StatusSeeOther)
}

func TestAMessageIsShownOnceAndAtItsPlace(t *testing.T) {
	t.Parallel()
	_, b, ids := sampled(t, operator)
	path := ids.path(agent)
	form := b.get(path).form(path + "/suspend")
	b.ask(http.MethodPost, path+"/suspend", form).want(http.StatusSeeOther)
	b.get(sessions).saysNot("The agent is suspended")
	b.ask(http.MethodHead, path, nil)
	b.get(path).says("The agent is suspended")
	b.get(path).saysNot("The agent is suspended")
}

func TestACopyOfAMessageShowsNothingLater(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	var signed signIn
	text := must(w.console.host.OpenCookie(signInCookie, b.cookies[signInCookie].Value))(t)
	must(0, json.Unmarshal(text, &signed))(t)
	for age, shown := range map[time.Duration]bool{0: true, flashTime - 10*time.Second: true, flashTime + 2*time.Second: false} {
		message := flash{Text: "It is done.", Owner: signed.ID, Made: time.Now().Add(-age).Unix(), Place: agents}
		sealed := must(w.console.host.SealCookie(flashCookie, must(cookieText(message))(t)))(t)
		b.cookies[flashCookie] = &http.Cookie{Name: flashCookie, Value: sealed}
		wantEqual(t, fmt.Sprint("shown after ", age), strings.Contains(b.get(agents).words(), "It is done."), shown)
	}
}

func TestEveryResponseTellsTheBrowserWhatItMay(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, admin)
	answers := []*answer{w.browser(t).get(Prefix), b.get(Prefix + "/nowhere"), b.post(Prefix + "/nowhere")}
	for _, p := range w.console.pages() {
		if p.method == get && !p.stream && !p.raw {
			answers = append(answers, b.get(ids.path(p.path)))
		}
	}
	for _, got := range answers {
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": policy,
		} {
			wantEqual(t, got.what+": "+name, got.header.Values(name), []string{want})
		}
		got.checkMarkup()
	}
	wantEqual(t, "the policy allows what is unsafe", strings.Contains(policy, "unsafe"), false)
	wantContains(t, "the policy", policy, "frame-ancestors 'none'")
}

var foreign = regexp.MustCompile(`(?i)^(https?:)?//|^javascript:|^data:`)

// checkMarkup fails for what the policy would block, and for what a person without eyes or mouse would miss.
func (a *answer) checkMarkup() {
	a.t.Helper()
	headings := 0
	for node := range a.elements("") {
		for _, at := range node.Attr {
			if at.Key == "style" || strings.HasPrefix(at.Key, "on") {
				a.t.Errorf("%s: <%s> has %s=%q", a.what, node.Data, at.Key, at.Val)
			}
			if (at.Key == "src" || at.Key == "href" || at.Key == "action") && foreign.MatchString(at.Val) {
				a.t.Errorf("%s: <%s> leads to %q", a.what, node.Data, at.Val)
			}
		}
		switch node.Data {
		case "style":
			a.t.Errorf("%s has a style of its own", a.what)
		case "script":
			if attribute(node, "src") == "" {
				a.t.Errorf("%s has a script of its own", a.what)
			}
		case "h1":
			headings++
		case "html":
			if attribute(node, "lang") == "" {
				a.t.Errorf("%s has no language", a.what)
			}
		}
	}
	if headings != 1 || !strings.Contains(a.text, `<main id="main"`) || !strings.Contains(a.text, `href="#main"`) {
		a.t.Errorf("%s has %d headings, or no main part or way to it", a.what, headings)
	}
}

func TestFilesAreKeptForGoodAndNamedByTheirContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	for name := range w.console.assets.names {
		path := w.console.assets.path(name)
		got := w.browser(t).get(path).want(200)
		wantEqual(t, path+": Cache-Control", got.header.Get("Cache-Control"), "public, max-age=31536000, immutable")
		wantEqual(t, path+" has a type", got.header.Get("Content-Type") != "", true)
		wantEqual(t, path+" is named by its content", regexp.MustCompile(`\.[0-9a-f]{12}\.\w+$`).MatchString(path), true)
	}
	w.browser(t).get(assetPrefix + "console.js").want(404)
	w.browser(t).get(assetPrefix + "nothing.000000000000.js").want(404)
	ofAnother := w.browser(t).get(assetPrefix + "console.000000000000.js").want(200)
	wantEqual(t, "of a file of another version, Cache-Control", ofAnother.header.Get("Cache-Control"), "no-store")
}

func TestAnUnknownPageOrMethodIsAnsweredAsAPage(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	b.get(Prefix + "/nowhere").want(404).says("no such page")
	b.get(agents + "/" + newWorld(t, settings{redis: w.mini}).newAgent("another organization's")).want(404)
	wantEqual(t, "Allow", b.ask(http.MethodDelete, Prefix, nil).want(405).header.Get("Allow"), "GET, POST")
	wantEqual(t, "HEAD", b.ask(http.MethodHead, Prefix, nil).want(200).text, "")
}
