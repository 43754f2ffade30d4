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
}

var workingChanges = map[string]working{
	agents:                                   {fields: []string{"name", "another", "scopes", "read"}},
	agent + "/suspend":                       {fields: []string{"reason", "a reason"}},
	agent + "/resume":                        {before: "/v1/agents/{agent}/suspend", own: true},
	agent + "/revoke":                        {fields: []string{"confirm", "revoke"}, own: true},
	agent + "/rotate-secret":                 {fields: []string{"confirm", "rotate"}},
	agent + "/limits":                        {fields: []string{"max_value_usd_per_day", "5", "max_open_sessions", "7"}},
	agent + "/families/{family}/revoke":      {own: true},
	sessions:                                 {fields: []string{"agent_id", "{agent}", "max_actions", "5"}},
	session + "/suspend":                     {fields: []string{"reason", "a reason"}},
	session + "/resume":                      {before: "/v1/sessions/{session}/suspend", own: true},
	session + "/top-up":                      {fields: []string{"add_actions", "3", "add_value_usd", "0.5"}},
	session + "/end":                         {fields: []string{"confirm", "end"}, own: true},
	request + "/approve":                     {fields: []string{"add_value_usd", "5"}, own: true},
	request + "/deny":                        {fields: []string{"comment", "no"}, own: true},
	transaction + "/roll-back":               {fields: []string{"confirm", "roll back"}, own: true},
	budget:                                   {fields: []string{"max_value_usd", "5000", "period", "month"}},
	budget + "/remove":                       {fields: []string{"confirm", "remove"}},
	webhooks:                                 {fields: []string{"url", "https://hooks.example.com/another"}},
	webhook + "/test":                        {},
	webhook + "/change":                      {fields: []string{"url", "https://hooks.example.com/changed"}},
	webhook + "/rotate":                      {fields: []string{"confirm", "rotate"}},
	webhook + "/delete":                      {fields: []string{"confirm", "delete"}, own: true},
	webhook + "/deliveries/{delivery}/retry": {},
	apiKeys:                                  {fields: []string{"name", "another", "role", "viewer"}},
	apiKey + "/rotate":                       {fields: []string{"confirm", "rotate"}},
	apiKey + "/delete":                       {fields: []string{"confirm", "delete"}, own: true},
	stopPath:                                 {fields: []string{"confirm", "stop"}},
	stopPath + "/resume":                     {fields: []string{"confirm", "resume"}},
}

// change is a change of the table with an object of its own, and a form by which it succeeds.
type change struct {
	page
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
		c := change{page: p, path: ids.path(p.path), form: url.Values{"once": {uuid.NewString()}}}
		for i := 0; i < len(how.fields); i += 2 {
			c.form.Set(how.fields[i], ids.path(how.fields[i+1]))
		}
		all = append(all, c)
	}
	if len(all) != len(workingChanges) {
		w.t.Errorf("workingChanges has %d changes, and the table %d", len(workingChanges), len(all))
	}
	return all
}

func (b *browser) change(c change, csrf string) *answer {
	b.t.Helper()
	c.form.Set("csrf", csrf)
	return b.ask(http.MethodPost, c.path, c.form)
}

// TestOnlyAdminsMakeAdminsChanges sends every change of the table by the cookies of roles that it is not for, in a form
// that is complete, and then the same forms as an admin, who changes something by each.
func TestOnlyAdminsMakeAdminsChanges(t *testing.T) {
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
			if got := b.change(c, csrf).want(http.StatusForbidden); !strings.Contains(got.words(), "needs the role "+string(c.role)) {
				t.Errorf("%s as %s: %s", got.what, role, got.words())
			}
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
		if got := b.follow(b.change(c, csrf)); strings.Contains(got.words(), c.undone) || w.stored() == before {
			t.Errorf("%s as admin changed nothing: %s", c.path, got.words())
		}
	}
}

// TestACookieIsNoCredentialOfTheAPI sends a console's cookie to the API.
func TestACookieIsNoCredentialOfTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	b := w.as(t, admin)
	before := w.settled()
	for _, path := range []string{"/v1/agents", "/v1/agents/suspend", "/v1/agents/{agent}/suspend", "/v1/sessions/{session}/end", "/v1/api-keys", "/v1/webhooks"} {
		b.ask(http.MethodPost, ids.path(path), url.Values{}).want(http.StatusUnauthorized)
		b.headers["Content-Type"] = "application/json"
		b.ask(http.MethodPost, ids.path(path), nil).want(http.StatusUnauthorized)
		delete(b.headers, "Content-Type")
	}
	if w.stored() != before {
		t.Error("a cookie changed something by the API")
	}
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
