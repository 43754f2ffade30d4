package server_test

import (
	"io"
	"iter"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"remit/server"
)

var roleNames = []string{"viewer", "operator", "admin"}

// requiredRoles returns the roles in the description of what an API key opens, by method and path.
func requiredRoles() map[string]string {
	required := map[string]string{}
	for _, o := range server.Operations() {
		if o.Role != "none" {
			required[o.Method+" "+o.Paths[0]] = o.Role
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
	best := patternOf(e.method, path, maps.Keys(required))
	if best == "" {
		t.Fatalf("openapi.json names no role of %s %s", e.method, e.path)
	}
	if !slices.Contains(roleNames, required[best]) {
		t.Fatalf("openapi.json has x-role %q at %s", required[best], best)
	}
	return best
}

// patternOf returns which of these, each a method and the pattern of a path, a request is. It returns "" for none.
func patternOf(method, path string, patterns iter.Seq[string]) (best string) {
	for one := range patterns {
		of, pattern, _ := strings.Cut(one, " ")
		fits := func(part, given string) bool { return part == given || strings.HasPrefix(part, "{") }
		if of == method && slices.EqualFunc(strings.Split(pattern, "/"), strings.Split(path, "/"), fits) &&
			(best == "" || strings.Count(one, "{") < strings.Count(best, "{")) {
			best = one
		}
	}
	return best
}

// byAnyKey returns every endpoint that an API key opens.
func byAnyKey(w tenant, session, transaction string) []endpoint {
	return w.endpoints(session, transaction, func(o server.Operation) bool { return o.ByKey })
}

// A key without the role is refused before anything else is shown or done. A key with just the role is let through, whatever
// comes next.
func TestEveryOperationTakesItsRoleAndNoLess(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, required := api.newTenant(), requiredRoles()
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
				for _, malformed := range []any{raw("{"), fields{"unknown": 1}} {
					w.ask(e.method, e.path, malformed, asKey(keys[role])).refused(403, "insufficient_role").
						has(fields{"required_role": required[operation]})
				}
			}
			if e.body != nil && e.method != "GET" {
				w.ask(e.method, e.path, raw("{"), asKey(newKeyOf(uuid.MustParse(w.org)))).refused(401, "invalid_api_key")
				w.ask(e.method, e.path, raw("{"), asKey(keys[required[operation]])).refused(400, "invalid_request")
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

		for i, asked := range byAnyKey(w, session, transaction) {
			for _, role := range roleNames[slices.Index(roleNames, required[operationOf(t, asked, required)]):] {
				own, e, key := w, asked, keys[role]
				if e.method != "GET" { // it may spoil the tenant for others
					own = api.newTenant()
					e, key = byAnyKey(own, own.newSession(nil), own.begin(nil))[i], own.newKey(role).text
				}
				if r := own.ask(e.method, e.path, e.body, asKey(key)); r.status == 401 || r.status >= 500 ||
					strings.Contains(string(r.body), "insufficient_role") {
					t.Errorf("%s as %s: %d %s", r.what, role, r.status, r.body)
				}
			}
		}
	})
}

// The test above drives every route that an API key opens. A key changes nothing at the others, whatever its role.
func TestEveryRouteIsDrivenWithEveryRole(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		undriven := map[string]bool{}
		for _, route := range api.on.server.Routes() {
			undriven[route] = true
		}
		for _, e := range byAnyKey(w, w.newSession(nil), w.begin(nil)) {
			route := patternOf(e.method, e.path, maps.Keys(undriven))
			if route == "" {
				t.Errorf("no route answers %s %s", e.method, e.path)
			}
			undriven[route] = false
		}
		for _, role := range roleNames {
			key := asKey(w.newKey(role).text)
			for route := range undriven {
				if undriven[route] {
					w.takesNoKey(route, key)
				}
			}
		}
	})
}

// opensWithoutKey reports whether openapi.json has the role "none" for the route.
func opensWithoutKey(route string) bool {
	return slices.ContainsFunc(server.Operations(), func(o server.Operation) bool {
		return o.Role == "none" && slices.Contains(o.Names(), route)
	})
}

// takesNoKey fails the test unless no API key opens the route: what is answered to one is answered without.
func (w tenant) takesNoKey(route string, key option) {
	w.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	path = regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(path, uuid.NewString())
	if method == "" {
		method, path = "GET", strings.ReplaceAll(path, "{path:*}", "x")
	} else if !opensWithoutKey(route) {
		w.t.Errorf("%s is driven with no role, and openapi.json has not x-role none for it", route)
		return
	}
	with, body := w.statusOf(method, path, key)
	if without, _ := w.statusOf(method, path); with != without || strings.Contains(body, `"code":"insufficient_role"`) {
		w.t.Errorf("%s: %d with a key, %d without: %.200s", route, with, without, body)
	}
}

// statusOf sends a request whose answer need not be JSON.
func (w tenant) statusOf(method, path string, options ...option) (status int, body string) {
	w.t.Helper()
	request := must(http.NewRequest(method, "http://"+w.on.address+path, nil))(w.t)
	for _, set := range options {
		set(request.Header)
	}
	answer := must(w.http.Do(request))(w.t)
	defer answer.Body.Close()
	return answer.StatusCode, string(must(io.ReadAll(answer.Body))(w.t))
}

// A foreign or unknown object shows as little by a key without the role as by no key.
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
