package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"remit/server"
)

var roleNames = []string{"viewer", "operator", "admin"}

// byAnyKey returns every operation that an API key opens.
func byAnyKey() []server.Operation {
	return slices.DeleteFunc(slices.Clone(server.Operations()), func(o server.Operation) bool { return !o.ByKey })
}

// endpointsOf returns the endpoints of one operation.
func (w tenant) endpointsOf(o server.Operation, session, transaction string) []endpoint {
	return w.endpoints(session, transaction, func(one server.Operation) bool { return one.ID == o.ID })
}

// A key without the role is refused before anything else is shown or done. A key with just the role is let through, whatever
// comes next.
func TestEveryOperationTakesItsRoleAndNoLess(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		session, transaction := w.newSession(nil), w.begin(nil)
		keys := map[string]string{}
		for _, role := range roleNames {
			keys[role] = w.newKey(role).text
		}
		before, keysBefore := w.session(session), len(w.get("/v1/api-keys", asKey(w.key)).is(200).array())
		for _, o := range byAnyKey() {
			for _, e := range append(w.endpointsOf(o, session, transaction), w.endpointsOf(o, uuid.NewString(), uuid.NewString())...) {
				for _, role := range roleNames[:slices.Index(roleNames, o.Role)] {
					for _, body := range []any{e.body, raw("{"), fields{"unknown": 1}} {
						w.ask(e.method, e.path, body, asKey(keys[role])).refused(403, "insufficient_role").has(fields{"required_role": o.Role})
					}
				}
				if e.body != nil && e.method != "GET" {
					w.ask(e.method, e.path, raw("{"), asKey(newKeyOf(uuid.MustParse(w.org)))).refused(401, "invalid_api_key")
					w.ask(e.method, e.path, raw("{"), asKey(keys[o.Role])).refused(400, "invalid_request")
				}
			}
		}
		wantFields(t, "what was refused changed the session", w.session(session), before)
		wantEqual(t, "API keys", len(w.get("/v1/api-keys", asKey(w.key)).is(200).array()), keysBefore)
		w.get("/v1/agents/"+w.agent.id, asKey(w.key)).is(200).has(fields{"status": "active"})
		w.get("/v1/webhooks", asKey(w.key)).is(200).isList(t)

		for _, o := range byAnyKey() {
			for _, role := range roleNames[slices.Index(roleNames, o.Role):] {
				own, key, endpoints := w, keys[role], w.endpointsOf(o, session, transaction)
				if o.Method != "GET" { // it may spoil the tenant for others
					own = w.newTenant()
					key, endpoints = own.newKey(role).text, own.endpointsOf(o, own.newSession(nil), own.begin(nil))
				}
				for _, e := range endpoints {
					if r := own.ask(e.method, e.path, e.body, asKey(key)); r.status == 401 || r.status >= 500 ||
						strings.Contains(string(r.body), "insufficient_role") {
						t.Errorf("%s as %s: %d %s", r.what, role, r.status, r.body)
					}
				}
			}
		}
	})
}
