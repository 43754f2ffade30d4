package server_test

import (
	"strings"
	"testing"
)

// The query of a URL where keys are published may be a credential, as a signed URL of a bucket has it.
func TestOnlyAdminsReadTheQueryOfAKeySetsURL(t *testing.T) {
	t.Parallel()
	const plain, full = "https://keys.example/jwks", "https://keys.example/jwks?sig=s3cret&se=2027"
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		keys := map[string]string{"admin": w.key, "operator": w.newKey("operator").text, "viewer": w.newKey("viewer").text}
		agent, bare := "/v1/agents/"+w.agent.id, "/v1/agents/"+w.newAgent().id
		w.patch(agent, fields{"jwks_uri": full}, asKey(w.key)).is(200).has(fields{"jwks_uri": full})
		w.patch(bare, fields{"jwks_uri": plain}, asKey(w.key)).is(200)
		rules := []any{issuerRule(w.agent.id, object{"sub": "job"})}
		trusted := issuersPath + "/" + w.post(issuersPath, fields{"issuer": "https://idp.example", "jwks_uri": full, "rules": rules}, asKey(w.key)).is(201).text("id")
		for role, key := range keys {
			want := plain
			if role == "admin" {
				want = full
			}
			answers := []*response{
				w.get(agent, asKey(key)).is(200).has(fields{"jwks_uri": want}),
				w.get(trusted, asKey(key)).is(200).has(fields{"jwks_uri": want}),
				w.get(issuersPath, asKey(key)).is(200), w.get("/v1/agents", asKey(key)).is(200), w.get("/v1/events", asKey(key)).is(200),
				w.get(agent+"/events", asKey(key)).is(200),
			}
			w.get(bare, asKey(key)).is(200).has(fields{"jwks_uri": plain})
			if role != "viewer" {
				answers = append(answers,
					w.post(agent+"/suspend", fields{}, asKey(key)).is(200).has(fields{"jwks_uri": want}),
					w.post(agent+"/resume", fields{}, asKey(key)).is(200).has(fields{"jwks_uri": want}))
			}
			if listed := answers[2].array()[0]["jwks_uri"]; listed != want {
				t.Errorf("%s: the list has %v", role, listed)
			}
			for _, r := range answers {
				if role != "admin" && strings.Contains(string(r.body), "s3cret") {
					t.Errorf("%s: %s: %s", role, r.what, r.body)
				}
			}
		}
	})
}
