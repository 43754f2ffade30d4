package server_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
)

// usage is what an answer to a charge shows of a session that had 10 actions and 5 USD.
func usage(actions, used any) fields {
	return fields{
		"action_count": actions, "max_actions": 10, "value_used_usd": used, "max_value_usd": 5, "value_held_usd": 0,
	}
}

func TestChargeReturnsWhatIsUsedAndWhatRemains(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := w.exchange().access
		for _, prefix := range withAndWithoutV1 {
			id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
			expires := w.session(id)["expires_at"]
			for _, step := range []struct {
				as   option
				body any
				want fields
			}{
				{asKey(w.key), fields{}, usage(1, 0).with(fields{"remaining_actions": 9, "remaining_value_usd": 5})},
				{asAgent(access), fields{"value_usd": num("0.1")},
					usage(2, num("0.1")).with(fields{"remaining_actions": 8, "remaining_value_usd": num("4.9")})},
				{asAgent(access), fields{"action_type": "call", "value_usd": num("0.2"), "count": 3, "scope": "read"},
					usage(5, num("0.3")).with(fields{"remaining_actions": 5, "remaining_value_usd": num("4.7")})},
				{asKey(w.key), fields{"count": 5, "value_usd": num("4.7"), "scope": "write"},
					usage(10, 5).with(fields{"remaining_actions": 0, "remaining_value_usd": 0})},
			} {
				w.post(prefix+"/sessions/"+id+"/actions", step.body, step.as).is(200).
					exactly(step.want.with(fields{"session_id": id, "expires_at": expires}))
			}
			if s := w.session(id); s["status"] != "active" || s["action_count"] != num(10) || s["value_used_usd"] != num(5) {
				t.Errorf("the session that is used up: %v", s)
			}
		}
	})
}

// The scope of an action must be in the token and in the session; an API key holds all, so only the session counts.
func TestTheScopeOfAnActionMustBeInTheTokenAndInTheSession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		reads, all, none := w.newSession(fields{"scopes": list("read")}), w.newSession(nil), w.newSession(fields{"scopes": list()})
		agent, key := asAgent(w.exchange().access), asKey(w.key)
		for _, test := range []struct {
			session string
			as      option
			scope   string
			allowed bool
		}{
			{reads, agent, "read", true}, {reads, key, "read", true},
			{reads, agent, "write", false}, {reads, key, "write", false},
			{all, agent, "write", true}, {all, key, "write", true},
			{all, agent, "admin", false}, {all, key, "admin", false},
			{none, agent, "read", false}, {none, key, "read", false},
			{all, key, "rea", false}, {all, agent, "READ", false},
		} {
			before := w.session(test.session)["action_count"]
			r := w.post("/sessions/"+test.session+"/actions", fields{"scope": test.scope}, test.as)
			if test.allowed {
				r.is(200)
				continue
			}
			r.refused(403, "insufficient_scope").exactly(fields{
				"type": someText, "title": someText, "detail": someText, "status": 403, "code": "insufficient_scope",
				"request_id": someText, "required_scope": test.scope,
			})
			want := `Bearer realm="remit", error="insufficient_scope", scope="` + test.scope + `"` + itsMetadata
			if got := r.header.Get("WWW-Authenticate"); got != want {
				t.Errorf("WWW-Authenticate %q, want %q", got, want)
			}
			if after := w.session(test.session)["action_count"]; after != before {
				t.Errorf("scope %s: refused, but action_count went from %v to %v", test.scope, before, after)
			}
		}
	})
}

// A token with less than its agent's scopes, which this service may sign one day, does not borrow from the session.
func TestAnAccessTokenCannotUseAScopeThatItLacks(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		id := w.newSession(nil)
		of := must(api.on.keyring.ParseRefresh(w.exchange().refresh))(t)
		narrow := must(api.on.keyring.SignAccess(token.Access{
			Agent: of.Agent, Organization: uuid.MustParse(w.org), Family: of.Family, Scopes: []string{"read"}, Issued: time.Now(),
			Client: of.Agent, Audience: []string{api.on.keyring.Issuer()},
		}))(t)
		refused := w.post("/sessions/"+id+"/actions", fields{"scope": "write"}, asAgent(narrow)).refused(403, "insufficient_scope")
		if got := refused.text("required_scope"); got != "write" {
			t.Errorf("required_scope %s, want write", got)
		}
		if got := w.post("/sessions/"+id+"/actions", fields{"scope": "read"}, asAgent(narrow)).is(200).object()["action_count"]; got != num(1) {
			t.Errorf("action_count %v, want 1", got)
		}
	})
}
