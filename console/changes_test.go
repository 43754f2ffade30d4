package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"remit/redisstore"
)

// working is what lets a change of the table succeed: the fields of its form, and a request of the API before it.
type working struct {
	fields []string // names and values
	before string   // a path of the API that is sent {} by POST
	own    bool     // it has objects of its own, because it leaves others nothing to change
	says   []string // on the page that it leads to
	secret string   // how that page's secret begins
}

var workingChanges = map[string]working{
	agents: {fields: []string{"name", "another", "scopes", "read"},
		says: []string{"The agent was created", "shown only now"}, secret: "rms_"},
	agent + "/suspend": {fields: []string{"reason", "a reason"},
		says: []string{"The agent is suspended", "Suspended since", "a reason"}},
	agent + "/resume":        {before: "/v1/agents/{agent}/suspend", own: true, says: []string{"The agent is resumed"}},
	agent + "/revoke":        {fields: []string{"confirm", "revoke"}, own: true, says: []string{"The agent is revoked"}},
	agent + "/rotate-secret": {fields: []string{"confirm", "Rotate "}, says: []string{"The agent has a new secret"}, secret: "rms_"},
	agent + "/limits": {fields: []string{"max_value_usd_per_day", "$12.345678", "max_open_sessions", "7"},
		says: []string{"The limits are set", "$12.345678", "of 7"}},
	agent + "/families/{family}/revoke": {own: true, says: []string{"The token family is revoked", "The agent has no tokens"}},
	sessions: {fields: []string{"agent_id", "{agent}", "max_actions", "5"},
		says: []string{"The session is created", "0 of 5"}},
	session + "/suspend": {fields: []string{"reason", "a reason"}, says: []string{"descendants are suspended", "a reason"}},
	session + "/resume":  {before: "/v1/sessions/{session}/suspend", own: true, says: []string{"descendants are resumed"}},
	session + "/top-up": {fields: []string{"add_actions", "3", "add_value_usd", "0.5"},
		says: []string{"limits are raised", "2 of 13", "$20.50"}},
	session + "/end":       {fields: []string{"confirm", "end"}, own: true, says: []string{"The session is ended", "completed"}},
	request + "/approve":   {fields: []string{"add_value_usd", "5"}, own: true, says: []string{"The request is approved"}},
	request + "/deny":      {fields: []string{"comment", "no"}, own: true, says: []string{"The request is denied"}},
	sessionKeys:            {fields: []string{"name", "editor"}, says: []string{"The session key is created", "editor"}, secret: "rmsk_"},
	sessionKey + "/delete": {fields: []string{"confirm", "delete"}, own: true, says: []string{"The session key is deleted"}},
	transaction + "/roll-back": {fields: []string{"confirm", "roll back"}, own: true,
		says: []string{"The transaction is rolled back: $2.00", "rolled_back", "held $0.00"}},
	budget:             {fields: []string{"max_value_usd", "5000", "period", "month"}, says: []string{"The budget is set", "a month"}},
	budget + "/remove": {fields: []string{"confirm", "remove"}, says: []string{"The budget is removed", "There is no budget"}},
	webhooks: {fields: []string{"url", "https://hooks.example.com/another", "types", "agent.suspended, session.ended", "description", "on call"},
		says: []string{"The webhook is created", "agent.suspended", "session.ended", "on call", "not confirmed"}, secret: "whsec_"},
	webhook + "/test": {says: []string{"A test event is on its way", "webhook.test", "pending"}},
	webhook + "/change": {fields: []string{"url", "https://hooks.example.com/changed"},
		says: []string{"The webhook is changed", "/changed", "Events all"}},
	webhook + "/rotate":                      {fields: []string{"confirm", "rotate"}, says: []string{"new secret"}, secret: "whsec_"},
	webhook + "/delete":                      {fields: []string{"confirm", "delete"}, own: true, says: []string{"The webhook is deleted"}},
	webhook + "/deliveries/{delivery}/retry": {},
	apiKeys: {fields: []string{"name", "another", "role", "viewer"},
		says: []string{"The API key is created", "another"}, secret: "rmk_"},
	apiKey + "/rotate": {fields: []string{"confirm", "rotate"},
		says: []string{"The API key is replaced"}, secret: "rmk_"},
	apiKey + "/delete":   {fields: []string{"confirm", "delete"}, own: true, says: []string{"The API key is deleted"}},
	stopPath:             {fields: []string{"confirm", "stop"}},
	stopPath + "/resume": {fields: []string{"confirm", "resume"}},
}

// change is a change of the table with an object of its own, and a form by which it succeeds.
type change struct {
	page
	working
	path string
	form url.Values
}

// changes returns all changes of the table. It fails for one that workingChanges does not know.
func (w *world) changes() []change {
	w.t.Helper()
	var all []change
	shared := w.sample()
	for _, p := range w.console.pages() {
		if p.method == get || p.open != nil {
			continue
		}
		how, known := workingChanges[p.path]
		if !known {
			w.t.Errorf("%s: say in workingChanges how it succeeds", p.path)
			continue
		}
		ids := shared
		if how.own {
			ids = w.sample()
		}
		if how.before != "" {
			w.asAdmin(http.MethodPost, ids.path(how.before), map[string]any{})
		}
		c := change{page: p, working: how, path: ids.path(p.path), form: url.Values{"once": {uuid.NewString()}}}
		for i := 0; i < len(how.fields); i += 2 {
			c.form.Set(how.fields[i], ids.path(how.fields[i+1]))
		}
		all = append(all, c)
	}
	wantEqual(w.t, "how many changes workingChanges has", len(workingChanges), len(all))
	return all
}

func (b *browser) change(c change, csrf string) *answer {
	b.t.Helper()
	c.form.Set("csrf", csrf)
	return b.ask(http.MethodPost, c.path, c.form)
}

// TestOnlyAdminsMakeAdminsChangesAndEachOnce sends every change of the table by the cookies of roles that it is not for, in a form
// that is complete, and then the same forms as an admin, who changes something by each. It sends each again, as a double click does.
func TestOnlyAdminsMakeAdminsChangesAndEachOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	changes := w.changes()
	w.asAdmin(http.MethodPut, "/v1/budget", map[string]any{"max_value_usd": 1_000_000, "period": "none"})
	for _, role := range []redisstore.Role{viewer, operator} {
		b := w.as(t, role)
		csrf, before := b.csrf(), w.settled()
		for _, c := range changes {
			if rank(role) >= rank(c.role) {
				continue
			}
			b.change(c, csrf).want(http.StatusForbidden).says("needs the role " + string(c.role))
			for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete} {
				b.ask(method, c.path, c.form).want(http.StatusMethodNotAllowed)
			}
		}
		if after := w.stored(); after != before {
			t.Errorf("a %s changed what is stored: %s", role, difference(before, after))
		}
	}
	b := w.as(t, admin)
	csrf := b.csrf()
	for _, c := range changes {
		before := w.stored()
		sent := b.change(c, csrf)
		got := b.follow(sent).says(c.says...)
		if strings.Contains(got.words(), c.undone) || w.stored() == before {
			t.Errorf("%s as admin changed nothing: %s", c.path, got.words())
		}
		again := b.change(c, csrf)
		wantEqual(t, c.path+" leads, the second time, to", again.header.Get("Location"), sent.header.Get("Location"))
		if repeated := b.follow(again).says(c.says...); c.secret != "" {
			b.checkSecret(sent, got.secret(c.secret), repeated.secret(c.secret))
		}
		// After a request comes the overview, which has it until the event comes.
		if c.own && !strings.Contains(c.path, "/requests/") && got.hasForm(c.path) {
			t.Errorf("%s may be done again", c.path)
		}
	}
}

// checkSecret checks that a secret is shown once by the page that a change leads to, and that the change made one when it was sent twice.
func (b *browser) checkSecret(sent *answer, shown, repeated string) {
	b.t.Helper()
	wantEqual(b.t, sent.what+" shows, the second time,", repeated, shown)
	to := sent.header.Get("Location")
	if strings.Contains(to+sent.text+b.get(to).text, shown) {
		b.t.Errorf("the redirect of %s holds the secret, or it is shown again", sent.what)
	}
}

func TestACookieIsNoCredentialOfTheAPI(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, admin)
	before := w.settled()
	for _, path := range []string{"/v1/agents", "/v1/agents/suspend", "/v1/agents/{agent}/suspend", "/v1/sessions/{session}/end", "/v1/api-keys", "/v1/webhooks"} {
		b.ask(http.MethodPost, ids.path(path), url.Values{}).want(http.StatusUnauthorized)
		b.headers["Content-Type"] = "application/json"
		b.ask(http.MethodPost, ids.path(path), nil).want(http.StatusUnauthorized)
		delete(b.headers, "Content-Type")
	}
	wantEqual(t, "after requests of the API with a cookie all is stored as before", w.stored() == before, true)
}

// difference returns the lines that only one of two texts of world.stored has, each after its key.
func difference(before, after string) string {
	counts := map[string]int{}
	count := func(text string, by int) {
		key := ""
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "- ") {
				key = strings.TrimSpace(line)
			}
			counts[key+line] += by
		}
	}
	count(before, -1)
	count(after, 1)
	var text strings.Builder
	for line, n := range counts {
		if n != 0 {
			fmt.Fprintf(&text, "%+d %s", n, line)
		}
	}
	return text.String()
}
