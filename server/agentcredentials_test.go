package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// anEd25519Key is the public key of RFC 8037 appendix A.2, anECKey that of RFC 7515 appendix A.3.
var (
	anEd25519Key = object{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
	anECKey      = object{"kty": "EC", "crv": "P-256",
		"x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
)

func keySet(keys ...any) object { return object{"keys": keys} }

func TestAnAgentShowsWhatItAuthenticatesWith(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		for _, given := range []fields{
			{"audiences": list()},
			{"audiences": list("https://mcp.example.com/", "urn:b:c", "http://127.0.0.1:8080/x", "spiffe://a/b", "api:x")},
			{"jwks": keySet(changed(anEd25519Key, object{"kid": "a"}), changed(anECKey, object{"kid": "b"})), "dpop_required": true},
			{"jwks_uri": "https://keys.example.com:8443/jwks.json?a=b"},
		} {
			created := w.post("/v1/agents", fields{"name": "scout", "scopes": list("read")}.with(given), asKey(w.key)).is(201)
			w.get("/v1/agents/"+created.text("id"), asKey(w.key)).is(200).exactly(created.has(given).object().without("secret"))
		}
		body := fields{"name": "scout", "scopes": list(), "audiences": nil, "jwks": nil, "jwks_uri": nil, "dpop_required": false, "secret": true}
		created := w.post("/v1/agents", body, asKey(w.key)).is(201)
		for _, absent := range []string{"audiences", "jwks", "jwks_uri", "dpop_required", "has_secret"} {
			created.lacks(absent)
		}
		w.patch("/v1/agents/"+created.text("id"), fields{"jwks": keySet(changed(anEd25519Key, object{"x5t": "dropped"}))}, asKey(w.key)).is(200).
			has(fields{"jwks": keySet(anEd25519Key)})
	})
}

func TestAnAgentWithoutASecretGetsOneByARotation(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		bare := fields{"name": "scout", "scopes": list(), "secret": false}
		create := func(body fields) *response { return w.post("/v1/agents", body, asKey(w.key), keyed("k")) }
		created := create(bare).is(201).has(fields{"has_secret": false})
		created.lacks("secret")
		wantSameAnswer(t, created, create(bare).is(201))
		create(bare.without("secret")).refused(422, "idempotency_key_reused")
		path := "/v1/agents/" + created.text("id")
		rotated := w.post(path+"/secret/rotate", fields{"grace_seconds": 600}, asKey(w.key)).is(200)
		rotated.exactly(fields{"id": created.text("id"), "secret": aSecret, "previous_expires_at": aboutNow})
		w.post("/v1/auth/token", fields{"agent_id": created.text("id"), "secret": rotated.text("secret")}).is(200)
		w.get(path, asKey(w.key)).is(200).lacks("has_secret")
	})
}

// What a key, a URL and an audience may be, internal/token and TestAMalformedResourceIsRefusedByName show.
func TestUnusableCredentialsOfAnAgentAreRefusedByTheirField(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		path := "/v1/agents/" + w.agent.id
		before := w.get(path, asKey(w.key)).is(200)
		seventeen := list()
		for i := range 17 {
			seventeen = append(seventeen, fmt.Sprintf("https://a.example/%d", i))
		}
		for wrong, bodies := range map[string][]fields{
			"jwks":         {{"jwks": keySet(slices.Repeat([]any{anECKey}, 9)...)}, {"jwks": list()}, {"jwks": "{}"}},
			"jwks.keys[1]": {{"jwks": keySet(changed(anECKey, object{"kid": "a"}), changed(anEd25519Key, object{"kid": "b", "d": "AA"}))}},
			"jwks.keys[0]": {{"jwks": keySet(object{"kty": "oct", "k": "AAAA"})}},
			"jwks_uri": {{"jwks_uri": "http://keys.example.com/"}, {"jwks_uri": "https://keys.example.com/" + strings.Repeat("x", 488)}, {"jwks_uri": ""},
				{"jwks": keySet(anECKey), "jwks_uri": "https://a.example/"}},
			"audiences":     {{"audiences": seventeen}},
			"audiences[2]":  {{"audiences": list("urn:a", "urn:b", "urn:a")}},
			"audiences[0]":  {{"audiences": list("payments")}, {"audiences": list("urn:")}, {"audiences": []any{7}}, {"audiences": []any{nil}}},
			"dpop_required": {{"dpop_required": nil}, {"dpop_required": "true"}},

			"jwks.keys[0].kty": {{"jwks": json.RawMessage(`{"keys":[{"kty":"OKP","kty":"OKP"}]}`)}},
		} {
			for _, body := range bodies {
				w.post("/v1/agents", fields{"name": "scout", "scopes": list()}.with(body), asKey(w.key)).invalid(wrong)
				if w.patch(path, body, asKey(w.key)).invalid(wrong); t.Failed() {
					t.Fatalf("with %v", body)
				}
			}
		}
		w.patch(path, fields{"secret": false}, asKey(w.key)).invalid("secret")
		wantSameAnswer(t, before, w.get(path, asKey(w.key)))
	})
}
