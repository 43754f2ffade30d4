package server_test

import "testing"

// What a full Redis refuses and what goes on, redisstore shows. Here an organization stops an agent that has filled it.
func TestWhenRedisIsFullAnOrganizationStopsItsAgent(t *testing.T) {
	t.Parallel()
	url := privateRedis(t).URL()
	api := start(t, setup{redis: url})
	w := api.newTenant()
	leasing, tokens, key := w.leasing(nil), w.exchange(), asKey(w.key)
	access := asAgent(tokens.access)
	pending := w.beginAs(access, fields{"session_id": leasing, "value_usd": 1}).is(201).text("id")
	lease := w.lease(leasing, fields{"max_actions": 4, "max_value_usd": 2}, access).is(201).text("id")
	f := newForeignIssuer(t, "https://idp.example", "ES256")
	trust := issuersPath + "/" + w.trustKey(f, object{"sub": "job"})

	configure(t, url, "maxmemory", "1")
	w.post("/sessions/"+leasing+"/actions", fields{}, access).unavailable()
	w.get(authorizePath+"?session_id="+leasing, access).unavailable()
	if items := w.post("/v1/actions", batchOf(fields{"session_id": leasing}), access).items(1); items[0].status != 503 {
		t.Errorf("a charge in a batch: %+v", items[0])
	}
	renew := fields{"action_count": 1, "value_used_usd": 1, "renew": fields{"max_actions": 1, "expires_in_seconds": 1}}
	settled := w.post("/v1/leases/"+lease+"/settle", renew, access).is(200).object()
	if refusal, _ := settled["refusal"].(map[string]any); settled["renewed"] != nil || refusal["code"] != "unavailable" {
		t.Errorf("a full Redis renewed a lease: %v", settled)
	}
	w.present(f.sign(object{"sub": "job"})).refusedOAuth(503, "temporarily_unavailable", own("unavailable"))
	w.delete(trust, key).is(204)
	w.present(f.sign(object{"sub": "job"})).untrusted()
	w.post("/v1/transactions/"+pending+"/rollback", nil, key).is(200)
	w.revoke()
	w.get("/v1/auth/verify", access).refused(401, "invalid_token")

	configure(t, url, "maxmemory", "0")
	w.get("/sessions/"+leasing, key).is(200).has(fields{"status": "revoked", "action_count": 2})
}
