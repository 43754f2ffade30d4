package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"remit/openapi"
)

var roleNames = []string{"viewer", "operator", "admin"}

// requiredRoles returns the roles in the description, by method and path.
func requiredRoles(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openapi.JSON().Body, &file); err != nil {
		t.Fatal(err)
	}
	required := map[string]string{}
	for path, item := range file.Paths {
		for method, text := range item {
			var operation struct {
				Role string `json:"x-required-role"`
			}
			if json.Unmarshal(text, &operation) == nil && operation.Role != "" {
				required[strings.ToUpper(method)+" "+path] = operation.Role
			}
		}
	}
	return required
}

// operationOf returns the operation of the description that an endpoint is.
func operationOf(t *testing.T, e endpoint, required map[string]string) string {
	t.Helper()
	path := e.path
	if strings.HasPrefix(path, "/sessions") {
		path = "/v1" + path
	}
	best := ""
	for operation := range required {
		method, pattern, _ := strings.Cut(operation, " ")
		fits := func(part, given string) bool { return part == given || strings.HasPrefix(part, "{") }
		if method == e.method && slices.EqualFunc(strings.Split(pattern, "/"), strings.Split(path, "/"), fits) &&
			(best == "" || strings.Count(operation, "{") < strings.Count(best, "{")) {
			best = operation
		}
	}
	if best == "" {
		t.Fatalf("openapi.json names no role of %s %s", e.method, e.path)
	}
	return best
}

// byAnyKey returns every endpoint that an API key opens.
func byAnyKey(w tenant, session, transaction string) []endpoint {
	return slices.Concat(endpointsOfOrganizations(w, session), endpointsOfBoth(w, session, transaction), []endpoint{
		rollbackOf(transaction), {"POST", "/v1/auth/introspect", fields{"token": "x"}},
	})
}

// A key without the role is refused before anything else is told or done. A key with just the role is let through, whatever
// comes next.
func TestEveryOperationTakesItsRoleAndNoLess(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, required := api.newTenant(), requiredRoles(t)
		session, transaction := w.newSession(nil), w.begin(nil)
		keys := map[string]string{}
		for _, role := range roleNames {
			keys[role] = w.newKey(role).text
		}
		before, keysBefore := w.session(session), len(w.get("/v1/api-keys", asKey(w.key)).is(200).array())
		seen := map[string]bool{}
		for _, e := range byAnyKey(w, session, transaction) {
			operation := operationOf(t, e, required)
			seen[operation] = true
			least := slices.Index(roleNames, required[operation])
			for _, role := range roleNames[:least] {
				refused := w.ask(e.method, e.path, e.body, asKey(keys[role])).refused(403, "insufficient_role")
				refused.has(fields{"required_role": required[operation]})
			}
		}
		for operation := range required {
			if !seen[operation] {
				t.Errorf("no endpoint of the tests is %s", operation)
			}
		}
		if found := differences(w.session(session), before); found != "" {
			t.Errorf("what was refused changed the session: %s", found)
		}
		if n := len(w.get("/v1/api-keys", asKey(w.key)).is(200).array()); n != keysBefore {
			t.Errorf("there are %d keys now, not %d", n, keysBefore)
		}
		w.get("/v1/agents/"+w.agent.id, asKey(w.key)).is(200).has(fields{"status": "active"})
		w.get("/v1/webhooks", asKey(w.key)).is(200).isList(t)

		for i := range byAnyKey(w, session, transaction) {
			own := api.newTenant()
			e := byAnyKey(own, own.newSession(nil), own.begin(nil))[i]
			role := required[operationOf(t, e, required)]
			if r := own.ask(e.method, e.path, e.body, asKey(own.newKey(role).text)); r.status == 401 || r.status >= 500 ||
				strings.Contains(string(r.body), "insufficient_role") {
				t.Errorf("%s as %s: %d %s", r.what, role, r.status, r.body)
			}
		}
	})
}

// A foreign or unknown object is told of as little by a key without the role as by no key.
func TestAKeyWithoutTheRoleLearnsNothingOfObjects(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		viewer := asKey(w.newKey("viewer").text)
		known := w.post("/v1/agents/"+w.agent.id+"/revoke", nil, viewer).refused(403, "insufficient_role")
		for _, id := range []string{other.agent.id, w.org} {
			wantSameAnswer(t, known, w.post("/v1/agents/"+id+"/revoke", nil, viewer))
		}
	})
}

func TestAKeyThatIsDeletedIsRefusedByTheOtherInstanceAtItsNextRequest(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		for _, role := range roleNames {
			key := w.newKey(role)
			there.get("/v1/agents", asKey(key.text)).is(200)
			w.delete("/v1/api-keys/"+key.id, asKey(w.key)).is(204)
			there.get("/v1/agents", asKey(key.text)).refused(401, "invalid_api_key")
			there.get("/sessions", asKey(key.text)).refused(401, "invalid_api_key")
		}
	})
}
