package server_test

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestAQueryThatAListDoesNotKnowIsRefusedByItsParameter(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	w.newSession(nil)
	cursor := base64.RawURLEncoding.EncodeToString([]byte("sixteen bytes of"))
	common := map[string]string{ // FuzzListQuery has many more
		"foo=1": "foo", "foo": "foo", "Limit=1": "Limit", "limit%20=1": "limit ", "page=2": "page",
		"limit=0": "limit", "limit=201": "limit", "limit=": "limit", "limit": "limit", "limit=1.5": "limit", "limit=1&limit=1": "limit",
		"cursor=": "cursor", "cursor=" + cursor + "==": "cursor", "cursor=" + w.agent.id: "cursor", "cursor=" + cursor + "&cursor=" + cursor: "cursor",
		"status=": "status", "status=Active": "status", "status=active,revoked": "status", "status=active&status=active": "status",
	}
	id, bySession := w.agent.id, "session_id="+w.newSession(nil)
	of := map[string]map[string]string{
		"/v1/agents": {"agent_id=" + id: "agent_id", bySession: "session_id", "status=completed": "status", "status=expired": "status"},
		"/sessions": {"agent_id=": "agent_id", "agent_id=x": "agent_id", "agent_id=" + id + "&agent_id=" + id: "agent_id",
			bySession: "session_id", "status=pending": "status", "status=rolled_back": "status"},
		"/v1/transactions": {"agent_id=": "agent_id", "agent_id=x": "agent_id", "agent_id=" + id + "&agent_id=" + id: "agent_id",
			"session_id=": "session_id", "session_id=x": "session_id", bySession + "&" + bySession: "session_id",
			"session_id=00000000-0000-0000-0000-000000000000": "session_id", "transaction_id=" + id: "transaction_id",
			"status=active": "status", "status=completed": "status", "status=revoked": "status", "status=rolled-back": "status"},
	}
	of["/v1/agents/"+id+"/families"] = map[string]string{"agent_id=" + id: "agent_id", bySession: "session_id", "status=active": "status"}
	of["/v1/sessions"] = of["/sessions"]
	access := asAgent(w.exchange().access)
	for path, own := range of {
		callers := []option{asKey(w.key)}
		if !strings.HasPrefix(path, "/v1/agents") {
			callers = append(callers, access)
		}
		for _, as := range callers {
			for _, queries := range []map[string]string{common, own} {
				for query, field := range queries {
					w.get(path+"?"+query, as).invalid(field)
				}
			}
			w.get(path+"?limit=1", as).is(200)
			w.get(path+"?limit=200", as).is(200)
			w.get(path+"?cursor="+cursor, as).is(200)
			w.get(path+"?", as).is(200)
		}
	}
}

// The response quotes client input, which must not break it.
func TestANameInTheQueryThatIsNotUnicodeStillGetsAWholeAnswer(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	for _, query := range []string{
		"%ff=1", "%ff=1&%ff=2", "a%ffb=1&a%ffb=2", "%ed%a0%80=1", "%00=1", "%22%5c=1", "%0d%0aX:%20y=1", long(5000) + "=1",
		long(63) + "é=1", long(63) + "%c3%a9=1&" + long(63) + "%c3%a9=2",
	} {
		r := w.get("/v1/agents?"+query, asKey(w.key)).refused(400, "invalid_request")
		errors, _ := r.object()["errors"].([]any)
		if len(errors) == 0 {
			t.Errorf("%s: no errors in %s", r.what, r.body)
		}
		for _, e := range errors {
			if name, _ := e.(map[string]any)["field"].(string); name == "" || len(name) > 100 {
				t.Errorf("%s: names %q", r.what, name)
			}
		}
	}
}
