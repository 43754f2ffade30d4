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

// someKeySet is a set of public keys, as it is stored: P-256, of RFC 7517 appendix A.1.
var someKeySet = object{"keys": []any{object{
	"kty": "EC", "use": "sig", "kid": "1", "crv": "P-256",
	"x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
}}}

func TestATrustedIssuerIsCreatedReadChangedAndDeleted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there, key := w.through(api.another(t)), asKey(w.key)
		request := trustedIssuer(w.agent.id).with(fields{"description": "deployments"})
		created := w.post(issuersPath, request, key).is(201)
		created.exactly(request.with(fields{"id": anID, "created_at": aboutNow}))
		path := issuersPath + "/" + created.text("id")
		if location := created.header.Get("Location"); location != path {
			t.Errorf("Location %q", location)
		}
		there.get(path, key).is(200).exactly(created.object())
		spiffe := fields{"issuer": "spiffe://acme.example", "jwks": someKeySet, "rules": []any{
			issuerRule(w.agent.id, object{"sub": "spiffe://acme.example/agents/*"}),
			issuerRule(w.newAgent().id, object{"sub": "spiffe://acme.example/b", "aud": "x"}),
		}}
		second := w.post(issuersPath, spiffe, key).is(201)
		second.exactly(spiffe.with(fields{"id": anID, "created_at": aboutNow, "description": ""}))
		if got := there.get(issuersPath, key).is(200).ids(); !slices.Equal(got, []string{second.text("id"), created.text("id")}) {
			t.Errorf("listed %v", got)
		}
		w.get(issuersPath, asKey(w.newKey("viewer").text)).is(200)

		changed := there.patch(path, fields{"jwks": someKeySet, "description": ""}, key).is(200)
		changed.exactly(created.object().without("jwks_uri").with(fields{"jwks": someKeySet, "description": ""}))
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
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		key := asKey(w.key)
		path := issuersPath + "/" + w.post(issuersPath, trustedIssuer(w.agent.id), key).is(201).text("id")
		rule := func(claims object) fields { return fields{"rules": []any{issuerRule(w.agent.id, claims)}} }
		rules := func(count int, claims object) fields {
			return fields{"rules": slices.Repeat([]any{issuerRule(w.agent.id, claims)}, count)}
		}
		claims := func(count int) fields {
			many := object{}
			for i := range count {
				many[fmt.Sprint(i)] = "x"
			}
			return rule(many)
		}
		private := fields(someKeySet["keys"].([]any)[0].(object)).with(fields{"d": "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"})
		for name, test := range map[string]struct {
			body  fields
			names string
		}{
			"no rules":               {fields{"rules": list()}, "rules"},
			"65 rules":               {rules(65, object{"sub": "x"}), "rules"},
			"long rules":             {rules(64, object{"sub": strings.Repeat("x", 500)}), "rules"},
			"no claims":              {rule(object{}), "rules[0].claims"},
			"17 claims":              {claims(17), "rules[0].claims"},
			"a number":               {rule(object{"sub": 7}), "rules[0].claims.sub"},
			"null":                   {rule(object{"sub": nil}), "rules[0].claims.sub"},
			"an empty value":         {rule(object{"sub": ""}), "rules[0].claims.sub"},
			"a long value":           {rule(object{"sub": strings.Repeat("x", 513)}), "rules[0].claims.sub"},
			"a long name":            {rule(object{"sub": "x", strings.Repeat("n", 101): "x"}), "rules[0].claims." + strings.Repeat("n", 64) + "…"},
			"a star for everything":  {rule(object{"sub": "*"}), "rules[0].claims.sub"},
			"a star in the middle":   {rule(object{"sub": "repo:*/app"}), "rules[0].claims.sub"},
			"a star in a word":       {rule(object{"sub": "repo:acme*"}), "rules[0].claims.sub"},
			"no claim that tells":    {rule(object{"iss": "https://idp.example", "aud": "x"}), "rules[0].claims"},
			"all repositories":       {rule(object{"sub": "repo:*"}), "rules[0].claims"},
			"all projects":           {rule(object{"sub": "project_path:*", "iss": "https://idp.example"}), "rules[0].claims"},
			"all service accounts":   {rule(object{"sub": "system:serviceaccount:*"}), "rules[0].claims"},
			"a whole trust domain":   {rule(object{"sub": "spiffe://acme.example/*"}), "rules[0].claims"},
			"no agent":               {fields{"rules": []any{object{"claims": object{"sub": "x"}}}}, "rules[0].agent_id"},
			"an unknown field":       {fields{"rules": []any{fields(issuerRule(w.agent.id, object{"sub": "x"})).with(fields{"x": 1})}}, "rules[0].x"},
			"an agent that is none":  {fields{"rules": []any{issuerRule("x", object{"sub": "x"})}}, "rules[0].agent_id"},
			"an unknown agent":       {fields{"rules": []any{issuerRule(uuid.NewString(), object{"sub": "x"})}}, "rules[0].agent_id"},
			"another's agent":        {fields{"rules": []any{issuerRule(w.agent.id, object{"sub": "x"}), issuerRule(other.agent.id, object{"sub": "x"})}}, "rules[1].agent_id"},
			"a plain jwks_uri":       {fields{"jwks_uri": "http://idp.example/jwks"}, "jwks_uri"},
			"a long jwks_uri":        {fields{"jwks_uri": "https://idp.example/" + strings.Repeat("x", 493)}, "jwks_uri"},
			"jwks without keys":      {fields{"jwks": fields{"keys": list()}}, "jwks"},
			"jwks of something else": {fields{"jwks": fields{}}, "jwks"},
			"a private key":          {fields{"jwks": fields{"keys": []any{private}}}, "jwks.keys[0]"},
			"a secret key":           {fields{"jwks": fields{"keys": []any{fields{"kty": "oct", "k": "AAAA"}}}}, "jwks.keys[0]"},
			"a long description":     {fields{"description": strings.Repeat("é", 501)}, "description"},
			"an unknown member":      {fields{"audience": "x"}, "audience"},
		} {
			t.Run(name, func(t *testing.T) {
				c := w.in(t)
				body := trustedIssuer(w.agent.id).with(fields{"issuer": "https://other.example"}).with(test.body)
				if test.body["jwks"] != nil {
					body = body.without("jwks_uri")
				}
				c.post(issuersPath, body, key).invalid(test.names)
				c.patch(path, test.body, key).invalid(test.names)
			})
		}
		for _, issuer := range []any{"", "http://idp.example", "idp.example", "https://a:b@idp.example", "https://idp.example?", "spiffe://acme.example/x", 7, nil} {
			w.post(issuersPath, trustedIssuer(w.agent.id).with(fields{"issuer": issuer}), key).invalid("issuer")
		}
		w.post(issuersPath, fields{}, key).invalid("issuer", "jwks_uri", "rules")
		w.post(issuersPath, trustedIssuer(w.agent.id).with(fields{"jwks": someKeySet}), key).invalid("jwks_uri")
		w.patch(path, fields{"jwks": someKeySet, "jwks_uri": "https://idp.example/jwks"}, key).invalid("jwks_uri")
		w.patch(path, fields{}, key).is(400)
		w.patch(path, fields{"issuer": "https://other.example"}, key).invalid("issuer")
		if got := w.get(issuersPath, key).is(200).ids(); len(got) != 1 {
			t.Errorf("listed %v", got)
		}
	})
}

func TestAnIssuerIsTrustedOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.post(issuersPath, trustedIssuer(w.agent.id), asKey(w.key)).is(201)
		w.post(issuersPath, trustedIssuer(w.agent.id), asKey(w.key)).refused(409, "issuer_exists")
		w.post(issuersPath, trustedIssuer(w.agent.id).with(fields{"issuer": "https://idp.example/"}), asKey(w.key)).is(201)
	})
}

func TestThe33rdTrustedIssuerIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for i := range 32 {
			body := trustedIssuer(w.agent.id).with(fields{"issuer": fmt.Sprintf("https://idp.example/%d", i)})
			w.post(issuersPath, body, asKey(w.key)).is(201)
		}
		w.post(issuersPath, trustedIssuer(w.agent.id), asKey(w.key)).
			refused(403, "quota_exceeded").has(fields{"quota": "trusted_issuers", "used": 32, "max": 32})
	})
}
