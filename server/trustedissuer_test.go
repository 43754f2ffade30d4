package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

const issuersPath = "/v1/trusted-issuers"

// trustedIssuer is a request to trust an issuer for an agent.
func trustedIssuer(agent string) fields {
	return fields{
		"issuer": "https://idp.example", "jwks_uri": "https://idp.example/jwks",
		"rules": []any{issuerRule(agent, object{"sub": "repo:acme/app:ref:refs/heads/main"})},
	}
}

func issuerRule(agent string, claims object) object {
	return object{"agent_id": agent, "claims": claims}
}

// object is a part of a body, as it is decoded.
type object = map[string]any

func TestATrustedIssuerIsCreatedReadChangedAndDeleted(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		there, key := w.through(w.another(t)), asKey(w.key)
		request := trustedIssuer(w.agent.id).with(fields{"description": "deployments"})
		created := w.post(issuersPath, request, key).is(201)
		created.exactly(request.with(fields{"id": anID, "created_at": aboutNow}))
		path := created.header.Get("Location")
		there.get(path, key).is(200).exactly(created.object())
		w.post(issuersPath, request, key).refused(409, "issuer_exists")
		spiffe := fields{"issuer": "spiffe://acme.example", "jwks": keySet(anECKey), "rules": []any{
			issuerRule(w.agent.id, object{"sub": "spiffe://acme.example/agents/*"}),
			issuerRule(w.newAgent().id, object{"sub": "spiffe://acme.example/b", "aud": "x"}),
		}}
		second := w.post(issuersPath, spiffe, key).is(201)
		second.exactly(spiffe.with(fields{"id": anID, "created_at": aboutNow, "description": ""}))
		wantEqual(t, "the list", there.get(issuersPath, key).is(200).ids(), []string{second.text("id"), created.text("id")})
		w.get(issuersPath, asKey(w.newKey("viewer").text)).is(200)

		changed := there.patch(path, fields{"jwks": keySet(anECKey), "description": ""}, key).is(200)
		changed.exactly(created.object().without("jwks_uri").with(fields{"jwks": keySet(anECKey), "description": ""}))
		w.get(path, key).is(200).exactly(changed.object())
		rules := []any{issuerRule(w.agent.id, object{"repository": "acme/app"})}
		there.patch(path, fields{"jwks_uri": "https://idp.example/2", "rules": rules}, key).is(200).
			exactly(changed.object().without("jwks").with(fields{"jwks_uri": "https://idp.example/2", "rules": rules}))
		w.delete(path, key).is(204)
		there.delete(path, key).is(404)
		w.get(path, key).is(404)
		w.patch(path, fields{"description": "d"}, key).is(404)
	})
}

func TestAWrongTrustedIssuerIsRefusedWithItsField(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		other := w.newTenant()
		key := asKey(w.key)
		path := issuersPath + "/" + w.post(issuersPath, trustedIssuer(w.agent.id), key).is(201).text("id")
		rule := func(claims object) fields { return fields{"rules": []any{issuerRule(w.agent.id, claims)}} }
		rules := func(count int, claims object) fields {
			return fields{"rules": slices.Repeat([]any{issuerRule(w.agent.id, claims)}, count)}
		}
		seventeen := object{}
		for i := range 17 {
			seventeen[fmt.Sprint(i)] = "x"
		}
		private := changed(anECKey, object{"d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}) // of RFC 7515 appendix A.3, too
		sub := func(pattern any) fields { return rule(object{"sub": pattern}) }
		for wrong, bodies := range map[string][]fields{
			"rules":               {{"rules": list()}, rules(65, object{"sub": "x"}), rules(64, object{"sub": strings.Repeat("x", 500)})},
			"rules[0].claims":     {rule(object{}), rule(seventeen), rule(object{"iss": "https://idp.example", "aud": "x"}), sub("repo:*")},
			"rules[0].claims.sub": {sub(7), sub(nil), sub(""), sub(strings.Repeat("x", 513)), sub("*"), sub("repo:acme*")},
			"rules[0].agent_id": {{"rules": []any{object{"claims": object{"sub": "x"}}}}, {"rules": []any{issuerRule("x", object{"sub": "x"})}},
				{"rules": []any{issuerRule(uuid.NewString(), object{"sub": "x"})}}},
			"rules[1].agent_id": {{"rules": []any{issuerRule(w.agent.id, object{"sub": "x"}), issuerRule(other.agent.id, object{"sub": "x"})}}},
			"rules[0].x":        {{"rules": []any{changed(issuerRule(w.agent.id, object{"sub": "x"}), object{"x": 1})}}},
			"jwks_uri":          {{"jwks_uri": "http://idp.example/jwks"}, {"jwks_uri": "https://idp.example/" + strings.Repeat("x", 493)}},
			"jwks":              {{"jwks": fields{"keys": list()}}, {"jwks": fields{}}},
			"jwks.keys[0]":      {{"jwks": fields{"keys": []any{private}}}},
			"description":       {{"description": strings.Repeat("é", 501)}},
			"audience":          {{"audience": "x"}},

			"rules[0].claims." + strings.Repeat("n", 64) + "…": {rule(object{"sub": "x", strings.Repeat("n", 101): "x"})},
		} {
			for _, given := range bodies {
				body := trustedIssuer(w.agent.id).with(fields{"issuer": "https://other.example"}).with(given)
				if given["jwks"] != nil {
					body = body.without("jwks_uri")
				}
				w.post(issuersPath, body, key).invalid(wrong)
				if w.patch(path, given, key).invalid(wrong); t.Failed() {
					t.Fatalf("with %v", given)
				}
			}
		}
		for _, issuer := range []any{"", "http://idp.example", "spiffe://acme.example/x", 7, nil} { // internal/token has more
			w.post(issuersPath, trustedIssuer(w.agent.id).with(fields{"issuer": issuer}), key).invalid("issuer")
		}
		w.post(issuersPath, fields{}, key).invalid("issuer", "jwks_uri", "rules")
		w.post(issuersPath, trustedIssuer(w.agent.id).with(fields{"jwks": keySet(anECKey)}), key).invalid("jwks_uri")
		w.patch(path, fields{"jwks": keySet(anECKey), "jwks_uri": "https://idp.example/jwks"}, key).invalid("jwks_uri")
		w.patch(path, fields{}, key).is(400)
		w.patch(path, fields{"issuer": "https://other.example"}, key).invalid("issuer")
		if got := w.get(issuersPath, key).is(200).ids(); len(got) != 1 {
			t.Errorf("listed %v", got)
		}
	})
}
