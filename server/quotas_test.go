package server_test

import (
	"testing"

	"remit/redisstore"
)

// wantQuotaExceeded checks a refusal, and that it says how much there is.
func (r *response) wantQuotaExceeded(quota string, used, most int64) {
	r.t.Helper()
	r.refused(403, "quota_exceeded").has(fields{"quota": quota, "used": num(used), "max": num(most)})
}

func TestAnOrganizationShowsItsQuotasAndItsUsage(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{Quotas: map[string]int64{"agents": 7, "pending_transactions": 0}}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := w.exchange().access
		session := w.newSession(nil)
		w.beginAs(asAgent(access), fields{"session_id": session, "value_usd": 1}).is(201)
		w.post("/sessions/"+session+"/actions", fields{}, asAgent(access), header("Idempotency-Key", "a")).is(200)
		shown := w.get("/v1/organizations/"+w.org, asKey(w.key)).is(200).object()
		usage := shown["usage"].(map[string]any)
		for name, want := range map[string]any{"agents": num(1), "open_sessions": num(1), "pending_transactions": num(1),
			"refresh_families": num(1), "idempotency_keys": num(1)} {
			wantEqual(t, "usage of "+name, usage[name], want)
		}
		quotas := shown["quotas"].(map[string]any)
		for name, want := range map[string]any{"agents": num(7), "pending_transactions": nil, "open_sessions": num(10_000_000), "bytes": nil} {
			wantEqual(t, "the quota of "+name, quotas[name], want)
		}
	})
}

func TestWhatExceedsAQuotaIsRefused(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{Quotas: map[string]int64{"agents": 1, "idempotency_keys": 1}}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, session := asAgent(w.exchange().access), w.newSession(nil)
		charge := "/sessions/" + session + "/actions"
		first := w.post(charge, fields{}, access, keyed("the-first")).is(200)
		w.get("/v1/organizations/"+w.org, asKey(w.key)).is(200)
		w.post(charge, fields{}, access, keyed("another")).wantQuotaExceeded("idempotency_keys", 1, 1)
		w.post("/v1/actions", batchOf(fields{"session_id": session}), access, keyed("a-third")).wantQuotaExceeded("idempotency_keys", 1, 1)
		w.post("/v1/agents", fields{"name": "n", "scopes": list()}, asKey(w.key)).wantQuotaExceeded("agents", 1, 1)
		w.post(charge, fields{}, access).is(200)
		w.post(charge, fields{}, access, keyed("the-first")).replays(first)
		w.wantMetrics(`remit_quota_refusals_total{by="agents"} 1`, `remit_quota_refusals_total{by="idempotency_keys"} 2`)
	})
}

func TestCreatingTooFastIsRefusedWithRetryAfter(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, setup{store: redisstore.Config{Rates: redisstore.Rates{Organization: 1, Agent: 1}}}, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, session := w.exchange().access, w.newSession(nil)
		create := func() *response {
			return w.post("/v1/agents", fields{"name": "n", "scopes": list()}, asKey(w.key))
		}
		refused := create()
		for n := 0; refused.status == 201 && n < 1000; n++ {
			refused = create()
		}
		wantEqual(t, "Retry-After", refused.refused(429, "rate_limited").header.Get("Retry-After"), "1")
		w.post("/sessions/"+session+"/actions", fields{}, asAgent(access)).is(200) // it creates nothing
		other := api.newTenant()
		other.post("/v1/agents", fields{"name": "n", "scopes": list()}, asKey(other.key)).is(201)
	})
}

// someResources is what quotas and usage of an organization are.
var someResources = matcher{"six resources", func(value any) bool {
	shown, _ := value.(map[string]any)
	for _, name := range []string{"agents", "open_sessions", "pending_transactions", "refresh_families", "idempotency_keys", "bytes"} {
		if _, has := shown[name]; !has {
			return false
		}
	}
	return len(shown) == 6
}}
