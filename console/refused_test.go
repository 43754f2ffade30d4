package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// wrong is a text that the field of a form does not take, and what the field then says. Without that no text is refused.
type wrong struct{ text, says string }

var (
	long    = wrong{strings.Repeat("x", 1001), "Must have at most"}
	confirm = map[string]wrong{"confirm": {"nonsense", "To confirm it, type "}}
	reasons = map[string]wrong{"reason": long}
	hook    = map[string]wrong{"url": {"http://10.0.0.1/x", "https"}, "types": {"no.such.event", "does not exist"}, "description": long}
	noID    = wrong{"x", "Must be a UUID"}
)

// wrongFields are the fields of each form by the address that it is sent to. Forms without fields are not in it.
var wrongFields = map[string]map[string]wrong{
	agents:             {"name": {strings.Repeat("n", 201), "Must have 1 to 200"}, "scopes": {`a"b`, "ASCII"}, "description": long},
	agent + "/suspend": reasons, agent + "/revoke": confirm, agent + "/rotate-secret": confirm,
	agent + "/limits": {
		"max_value_usd_per_day": {"much", "a number of dollars"}, "max_actions_per_minute": {"0", "Must be from 1"}, "max_open_sessions": {"1.5", "whole number"},
	},
	sessions: {
		"agent_id": noID, "parent_session_id": noID, "max_actions": {"0", "Must be from 1"}, "max_value_usd": {"-1", "a number of dollars"},
		"expires_in_seconds": {"2 weeks", "90m or 24h"}, "enforcement": {"maybe", "Must be enforce or observe"},
		"max_value_usd_per_action": {"0.0000001", "6 decimals"}, "max_committed_usd": {"x", "a number of dollars"},
		"max_lease_seconds": {"3601", "Must be from 0 to 3600"}, "scopes": {"other", "Must be scopes of the agent"},
		"thresholds": {"101", "percents from 1 to 100"}, "metadata": {`["no object"]`, "a JSON object"},
	},
	session + "/suspend": reasons, session + "/end": confirm,
	session + "/top-up":  {"add_actions": {"many", "whole number"}, "add_value_usd": {"0", "Must be more than 0"}, "expires_in_seconds": {"-1", "Must be from 1"}},
	request + "/approve": {"add_value_usd": {"6", "Must not be more than was asked for"}, "comment": {strings.Repeat("c", 501), "1 to 500 characters"}},
	request + "/deny":    {"comment": {strings.Repeat("c", 501), "1 to 500 characters"}},

	sessionKeys: {"name": {strings.Repeat("n", 201), "Must have 1 to 200"}}, sessionKey + "/delete": confirm,
	transaction + "/roll-back": confirm,

	budget: {"max_value_usd": {"", "how many dollars"}, "period": {"year", "Must be day, month or none"}}, budget + "/remove": confirm,
	webhooks: hook, webhook + "/change": hook, webhook + "/rotate": confirm, webhook + "/delete": confirm,
	apiKeys:            {"name": {strings.Repeat("n", 201), "Must have 1 to 200"}, "role": {"king", "Must be viewer, operator or admin"}, "days": {"0", "1 to 3650 days"}},
	apiKey + "/rotate": confirm, apiKey + "/delete": confirm,
	stopPath: {"reason": long, "confirm": confirm["confirm"]}, stopPath + "/resume": confirm,

	"search " + agents:       {"q": {}, "state": {}, "sort": {}},
	"search " + sessions:     {"agent": noID, "status": {"asleep", "Must be one of"}},
	"search " + eventsPath:   {"type": {"no.such.event", "does not exist"}},
	"search " + requestsPath: {"agent": noID, "status": {}},
	"search " + usagePath: {
		"from": {"2026-02-31", "date"}, "to": {"1969-01-01", "date"}, "group_by": {"hour", "day"}, "agent": noID,
	},
	"search " + webhook: {"status": {"lost", "Must be one of"}},
}

type shownForm struct {
	on, of string // the page's path; the form's key in wrongFields
	path   string
	method string
	fields url.Values
	ids    samples
}

// ofOther is the address of a form for an object that is not of the sample.
var ofOther = regexp.MustCompile("[0-9a-f]{8}-[0-9a-f]{4}")

// shownForms returns the forms with fields of all pages with objects, each once for a page of the table.
func (w *world) shownForms(b *browser) (all []shownForm) {
	w.t.Helper()
	ids := w.sample()
	w.asAdmin(http.MethodPut, "/v1/budget", map[string]any{"max_value_usd": 1000, "period": "none"})
	for _, p := range w.console.pages() {
		if p.method != get || p.open != nil || p.stream || p.raw {
			continue
		}
		seen, on := map[string]bool{}, ids.path(p.path)
		for form := range b.get(on).elements("form") {
			f := shownForm{on: on, of: attribute(form, "action"), path: attribute(form, "action"), method: attribute(form, "method"), fields: fieldsOf(form), ids: ids}
			for name, id := range ids {
				f.of = strings.ReplaceAll(f.of, id, "{"+name+"}")
			}
			if f.method == "get" {
				f.of = "search " + f.of
			}
			if len(controlsOf(form)) > 0 && !seen[f.of] && !ofOther.MatchString(f.of) {
				seen[f.of], all = true, append(all, f)
			}
		}
	}
	return all
}

// TestARefusedFormStaysOpenFilledAndMarked sends each form of each page with each of its fields wrong in turn.
func TestARefusedFormStaysOpenFilledAndMarked(t *testing.T) {
	t.Parallel()
	w, b := visited(t, admin)
	seen := map[string]bool{}
	for _, f := range w.shownForms(b) {
		seen[f.of] = true
		for name, control := range controlsOf(b.get(f.on).formNode(f.path, f.method)) {
			one, known := wrongFields[f.of][name]
			wantEqual(t, fmt.Sprintf("wrongFields says what the field %s of the form %q does not take", name, f.of), known, true)
			if one.says != "" {
				b.refuse(f, name, labelOf(control), one)
			}
		}
	}
	for of := range wrongFields {
		wantEqual(t, "a page has the form "+of, seen[of], true)
	}
}

// refuse sends a form with one field wrong, and checks the page that comes back.
func (b *browser) refuse(f shownForm, name, label string, one wrong) {
	b.t.Helper()
	sent := url.Values{}
	for field := range f.fields {
		sent.Set(field, f.fields.Get(field))
	}
	for i, fields := 0, workingChanges[f.of].fields; i < len(fields); i += 2 {
		if sent.Has(fields[i]) {
			sent.Set(fields[i], f.ids.path(fields[i+1]))
		}
	}
	sent.Set(name, one.text)
	var got *answer
	if f.method == "get" {
		got = b.whole(f.path + "?" + sent.Encode())
	} else {
		got = b.ask(http.MethodPost, f.path, sent)
	}
	if got.status < 400 || got.status >= 500 {
		b.t.Errorf("%s with %s=%.20q: %d", got.what, name, one.text, got.status)
		return
	}
	got.says(label).checkMarkup()
	wantEqual(b.t, got.what+": a refresh leaves the form", has(got.formNode(f.path, f.method), "data-kept"), true)
	got.checkRefused(f, sent, name, one)
	wantEqual(b.t, got.what+": Set-Cookie", got.header.Values("Set-Cookie"), nil)
}

func (a *answer) checkRefused(f shownForm, sent url.Values, wrongField string, one wrong) {
	a.t.Helper()
	form := a.formNode(f.path, f.method)
	kept := fieldsOf(form)
	if once := sent.Get("once"); f.method == "post" && (kept.Get("once") == once || kept.Get("csrf") != sent.Get("csrf") || kept.Get("back") != f.on) {
		a.t.Errorf("%s: the form could not be sent again: %v", a.what, kept)
	}
	for name, control := range controlsOf(form) {
		isWrong, what := name == wrongField, fmt.Sprintf("%s with a wrong %s: %s", a.what, wrongField, name)
		if isChoice := control.DataAtom == atom.Select; !isChoice || !isWrong {
			wantEqual(a.t, what, kept.Get(name), sent.Get(name))
		}
		wantEqual(a.t, what+" is marked", attribute(control, "aria-invalid") == "true", isWrong)
		wantEqual(a.t, what+" has the focus", has(control, "autofocus"), isWrong)
		if isWrong {
			wantContains(a.t, what, a.textOfID(attribute(control, "aria-describedby")), one.says)
			for n := range control.Ancestors() {
				wantEqual(a.t, what+" is hidden", n.Data == "details" && !has(n, "open"), false)
			}
		}
	}
}

func (a *answer) formNode(path, method string) *html.Node {
	a.t.Helper()
	for form := range a.elements("form") {
		if attribute(form, "action") == path && attribute(form, "method") == method {
			return form
		}
	}
	a.t.Fatalf("%s has no form for %s", a.what, path)
	return nil
}

func (a *answer) textOfID(id string) string {
	for n := range a.elements("") {
		if id != "" && attribute(n, "id") == id {
			return textOf(n)
		}
	}
	return ""
}

func TestWhatARefusedFormKeepsIsText(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, admin)
	w.caughtUp(b)
	b.once(agents, func(a *answer) bool { return strings.Contains(a.text, "1 request waits") }) // which would come amid the test
	b.whole(ids.path(agent))
	outlines := map[string]string{}
	for _, text := range append([]string{"plain"}, append(hostile, "</textarea><script>alert(1)</script>", "\n\nlines", "\xff\x00")...) {
		for path, on := range map[string]string{agents: agents, sessions: ids.path(agent), ids.path(agent + "/suspend"): ids.path(agent)} {
			got := b.ask(http.MethodPost, path, url.Values{
				"csrf": {b.csrf()}, "back": {on}, "name": {text}, "description": {text}, "scopes": {`"` + text}, "agent_id": {text},
				"metadata": {text}, "expires_in_seconds": {text}, "reason": {text + long.text}, "confirm": {text}, "max_value_usd": {text}, text: {text},
			})
			got.want(http.StatusBadRequest).checkMarkup()
			if outlines[path] == "" {
				outlines[path] = outline(got)
			}
			wantEqual(t, fmt.Sprintf("%s with %q has the elements", path, text), outline(got), outlines[path])
		}
		search := b.get(sessions + "?agent=" + url.QueryEscape(text)).want(http.StatusBadRequest)
		search.checkMarkup()
		if kept := fieldsOf(search.formNode(sessions, "get")).Get("agent"); text != "\xff\x00" && kept != text {
			t.Errorf("a search for %q shows %q", text, kept)
		}
	}
}

// TestARefusedFormWithoutItsPageLeadsBack names another page, or none, as the one that has the form.
func TestARefusedFormWithoutItsPageLeadsBack(t *testing.T) {
	t.Parallel()
	_, b := visited(t, operator)
	for back, to := range map[string]string{
		"": Prefix, budget: budget, "https://evil.example/console": Prefix, livePath: livePath, Prefix + "/nowhere": Prefix + "/nowhere",
		stopPath + "/progress": stopPath + "/progress", agents + "/" + uuid.NewString(): "",
	} {
		got := b.post(sessions, "csrf", b.csrf(), "back", back, "agent_id", "x").want(http.StatusSeeOther)
		if led := got.header.Get("Location"); to != "" && led != to {
			t.Errorf("with %q it leads to %s", back, led)
		}
	}
}

// TestARefusedFormKeepsNoSecret fills in a page of its own, which has fields that no page has now.
func TestARefusedFormKeepsNoSecret(t *testing.T) {
	t.Parallel()
	const page = `<div role="alert"><p>x</p></div><form method="post" action="/f"><input type="hidden" name="csrf" value="fresh"><input type="hidden" name="once" value="new">` +
		`<input type="password" name="token"><input readonly name="shown" value="kept"><label>Name, or none <input name="name"></label><details><textarea name="note">before</textarea></details></form>`
	var typed fasthttp.Args
	typed.Parse("csrf=old&once=old&token=secret&shown=other&name=a&note=after&more=x")
	for code, once := range map[string]string{"invalid_request": "new", codeOutcomeUnknown: "old"} {
		form := refusedForm{action: "/f", method: "post", typed: &typed, problem: &problem{Status: 400, Code: code, Detail: "no"}, undone: "Not done.", here: "/p"}
		if code == codeOutcomeUnknown {
			form.once = "old"
		}
		filled := must(form.fillIn([]byte(page)))(t)
		root := must(html.Parse(strings.NewReader(string(filled))))(t)
		got := fieldsOf(find(root, func(n *html.Node) bool { return n.Data == "form" }))
		want := url.Values{"csrf": {"fresh"}, "once": {once}, "token": {""}, "shown": {"kept"}, "name": {"a"}, "note": {"after"}}
		if !maps.EqualFunc(got, want, slices.Equal) || !strings.Contains(string(filled), `<details open=""><textarea name="note">after`) || strings.Contains(string(filled), "secret") {
			t.Errorf("%s: %v in %s", code, got, filled)
		}
	}
}
