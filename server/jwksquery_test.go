package server_test

import (
	"strings"
	"testing"
)

// The query of a URL where keys are published may be a credential, as a signed URL of a bucket has it.
func TestOnlyAdminsReadTheQueryOfAKeySetsURL(t *testing.T) {
	const plain, full = "https://keys.example/jwks", "https://keys.example/jwks?sig=s3cret&se=2027"
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		agent, bare := "/v1/agents/"+w.agent.id, "/v1/agents/"+w.newAgent().id
		w.patch(agent, fields{"jwks_uri": full}, asKey(w.key)).is(200).has(fields{"jwks_uri": full})
		w.patch(bare, fields{"jwks_uri": plain}, asKey(w.key)).is(200).has(fields{"jwks_uri": plain})
		rules := []any{issuerRule(w.agent.id, object{"sub": "job"})}
		trusted := issuersPath + "/" + w.post(issuersPath, fields{"issuer": "https://idp.example", "jwks_uri": full, "rules": rules}, asKey(w.key)).is(201).text("id")
		for _, role := range roleNames {
			key, want := asKey(w.newKey(role).text), fields{"jwks_uri": plain}
			w.get(bare, key).is(200).has(want)
			if role == "admin" {
				want = fields{"jwks_uri": full}
			}
			listed := w.get(issuersPath, key).is(200)
			wantEqual(t, role+": the list", listed.array()[0]["jwks_uri"], want["jwks_uri"])
			answers := []*response{
				w.get(agent, key).is(200).has(want), w.get(trusted, key).is(200).has(want), listed,
				w.get("/v1/agents", key).is(200), w.get("/v1/events", key).is(200), w.get(agent+"/events", key).is(200),
			}
			if role != "viewer" {
				answers = append(answers, w.post(agent+"/suspend", fields{}, key).is(200).has(want), w.post(agent+"/resume", fields{}, key).is(200).has(want))
			}
			for _, r := range answers {
				if role != "admin" && strings.Contains(string(r.body), "s3cret") {
					t.Errorf("%s: %s: %s", role, r.what, r.body)
				}
			}
		}
	})
}
