package server_test

import (
	"testing"
	"time"
)

// withAndWithoutV1 are the two prefixes under which the session paths answer.
var withAndWithoutV1 = []string{"", "/v1"}

// newSessionFields is what an answer shows of a session that was created with nothing but its agent.
func newSessionFields(w tenant) fields {
	return fields{
		"id": anID, "agent_id": w.agent.id, "status": "active", "max_actions": 1000, "action_count": 0,
		"max_value_usd": 100, "value_used_usd": 0, "value_held_usd": 0, "value_overage_usd": 0, "value_committed_usd": 0,
		"max_lease_seconds": 0, "scopes": list(agentScopes...), "metadata": fields{},
		"expires_at": aboutIn(time.Hour), "created_at": aboutNow, "enforcement": "enforce",
	}
}

func TestCreateSessionStoresEveryFieldOrItsDefault(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for _, test := range []struct {
			settings fields
			lifetime time.Duration
		}{
			{fields{}, time.Hour},
			{fields{"max_actions": 1, "max_value_usd": 0, "expires_in_seconds": 60}, time.Minute},
			{fields{"max_actions": 1_000_000_000, "max_value_usd": 1_000_000_000, "expires_in_seconds": 2_592_000}, 30 * 24 * time.Hour},
			{fields{"scopes": list("write"), "max_lease_seconds": 3600, "max_committed_usd": 12, "max_value_usd_per_action": num("0.5")}, time.Hour},
			{fields{"scopes": list(), "metadata": fields{"task": "t-1"}, "max_value_usd": num("12.3")}, time.Hour},
		} {
			for _, prefix := range withAndWithoutV1 {
				created := w.post(prefix+"/sessions", test.settings.with(fields{"agent_id": w.agent.id}), asKey(w.key)).is(201)
				created.exactly(newSessionFields(w).with(test.settings).without("expires_in_seconds").
					with(fields{"expires_at": aboutIn(test.lifetime)}))
				wantLifetime(t, created.object(), test.lifetime)
				location := created.header.Get("Location")
				wantEqual(t, "Location", location, "/v1/sessions/"+created.text("id"))
				w.get(location, asKey(w.key)).is(200).exactly(created.object())
			}
		}
		for _, scopes := range [][]any{list("admin"), list("read", "admin"), list("rea"), list("Read")} { // which its agent lacks
			w.post("/sessions", fields{"agent_id": w.agent.id, "scopes": scopes}, asKey(w.key)).invalid("scopes")
		}
	})
}

// wantLifetime checks expires_at = created_at + lifetime, to the millisecond.
func wantLifetime(t *testing.T, session fields, lifetime time.Duration) {
	t.Helper()
	created := must(time.Parse(time.RFC3339, session["created_at"].(string)))(t)
	expires := must(time.Parse(time.RFC3339, session["expires_at"].(string)))(t)
	wantEqual(t, "a lifetime", expires.Sub(created), lifetime)
}

func TestSessionsReadTheSameUnderBothPrefixesToKeyAndAgent(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, id := w.exchange().access, w.newSession(fields{
			"metadata": fields{"k": 1}, "max_actions": 9, "max_value_usd": 5, "max_committed_usd": 4, "max_lease_seconds": 60,
		})
		w.post("/sessions/"+id+"/actions", fields{"count": 2, "value_usd": num("0.25")}, asKey(w.key)).is(200)
		w.post("/sessions/"+id+"/leases", fields{"max_actions": 3, "max_value_usd": 0.5, "expires_in_seconds": 60}, asKey(w.key)).is(201)
		whole := w.session(id)
		summary := fields{}
		for _, name := range []string{"id", "agent_id", "status", "action_count", "max_actions", "value_used_usd", "max_value_usd", "expires_at"} {
			summary[name] = whole[name]
		}
		for _, prefix := range withAndWithoutV1 {
			for _, as := range []option{asKey(w.key), asAgent(access)} {
				w.get(prefix+"/sessions/"+id, as).is(200).exactly(whole)
				w.get(prefix+"/sessions", as).is(200).isList(t, summary)
			}
		}
	})
}

func TestEndSessionIsIdempotentOnEachInstance(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		access := asAgent(w.exchange().access)
		for _, prefix := range withAndWithoutV1 {
			for _, as := range []option{asKey(w.key), access} {
				id := w.newSession(nil)
				before, path := w.session(id), prefix+"/sessions/"+id
				first := w.post(path+"/end", nil, as).is(200).exactly(fields{"id": id, "status": "completed", "ended_at": aboutNow})
				wantSameAnswer(t, first, there.post(path+"/end", fields{}, asKey(w.key)))
				wantSameAnswer(t, first, w.post(path+"/end", nil, access))
				there.get(path, asKey(w.key)).is(200).exactly(before.with(fields{"status": "completed", "ended_at": first.text("ended_at")}))
			}
		}
	})
}
