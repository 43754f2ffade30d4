package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// anEd25519Key is the public key of RFC 8037 appendix A.2, ecKey that of RFC 7515 appendix A.3.
const (
	anEd25519Key = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	anECKey      = `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`
)

func keySet(keys ...string) json.RawMessage {
	return json.RawMessage(`{"keys":[` + strings.Join(keys, ",") + `]}`)
}

func named(key, kid string) string { return strings.Replace(key, "{", `{"kid":"`+kid+`",`, 1) }

func TestAnAgentShowsWhatItAuthenticatesWith(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		key := api.newTenant().key
		for _, c := range []struct{ given, shown fields }{
			{fields{"audiences": nil, "jwks": nil, "jwks_uri": nil, "dpop_required": false, "secret": true}, fields{}},
			{fields{"audiences": list()}, fields{"audiences": list()}},
			{fields{"audiences": list("https://mcp.example.com/", "urn:b:c", "http://127.0.0.1:8080/x", "spiffe://a/b", "api:x")}, nil},
			{fields{"jwks": keySet(named(anEd25519Key, "a"), named(anECKey, "b")), "dpop_required": true}, nil},
			{fields{"jwks": keySet(strings.Replace(anEd25519Key, "{", `{"x5t":"dropped",`, 1))}, fields{"jwks": keySet(anEd25519Key)}},
			{fields{"jwks_uri": "https://keys.example.com:8443/jwks.json?a=b"}, nil},
		} {
			if c.shown == nil {
				c.shown = c.given
			}
			body := fields{"name": "scout", "scopes": list("read")}.with(c.given)
			created := api.post("/v1/agents", body, asKey(key)).is(201).object()
			for _, field := range []string{"audiences", "jwks", "jwks_uri", "dpop_required", "has_secret"} {
				if got, want := jsonOf(t, created[field]), jsonOf(t, c.shown[field]); got != want {
					t.Errorf("%v: %s is %s, want %s", c.given, field, got, want)
				}
			}
			delete(created, "secret")
			api.get("/v1/agents/"+created["id"].(string), asKey(key)).is(200).exactly(created)
		}
	})
}

// jsonOf writes a value with its members in order, so that equal values have equal texts.
func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnAgentWithoutASecretGetsOneByARotation(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		key := api.newTenant().key
		created := api.post("/v1/agents", fields{"name": "scout", "scopes": list(), "secret": false}, asKey(key), header("Idempotency-Key", "k")).is(201)
		id := created.object()["id"].(string)
		if _, shown := created.object()["secret"]; shown || created.object()["has_secret"] != false {
			t.Errorf("created %s", created.body)
		}
		again := api.post("/v1/agents", fields{"name": "scout", "scopes": list(), "secret": false}, asKey(key), header("Idempotency-Key", "k")).is(201)
		wantSameAnswer(t, created, again)
		api.post("/v1/agents", fields{"name": "scout", "scopes": list()}, asKey(key), header("Idempotency-Key", "k")).refused(422, "idempotency_key_reused")

		rotated := api.post("/v1/agents/"+id+"/secret/rotate", fields{"grace_seconds": 600}, asKey(key)).is(200)
		rotated.exactly(fields{"id": id, "secret": aSecret, "previous_expires_at": aboutNow})
		api.post("/v1/auth/token", fields{"agent_id": id, "secret": rotated.object()["secret"]}).is(200)
		if shown, has := api.get("/v1/agents/"+id, asKey(key)).is(200).object()["has_secret"]; has {
			t.Errorf("has_secret is %v after a rotation", shown)
		}
	})
}

func TestChangesOfAnAgentsCredentialsAreEvents(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		path := "/v1/agents/" + w.agent.id
		l := w.trail()
		for _, c := range []struct {
			body    fields
			changed []any
		}{
			{fields{"audiences": list("https://a.example")}, list("audiences")},
			{fields{"audiences": list()}, list("audiences")},
			{fields{"audiences": nil}, list("audiences")},
			{fields{"jwks": keySet(anEd25519Key)}, list("jwks")},
			{fields{"jwks": keySet(anECKey)}, list("jwks")},
			{fields{"jwks_uri": "https://a.example/keys"}, list("jwks", "jwks_uri")},
			{fields{"jwks": keySet(anECKey), "name": "n"}, list("name", "jwks", "jwks_uri")},
			{fields{"jwks": nil}, list("jwks")},
			{fields{"dpop_required": true}, list("dpop_required")},
			{fields{"dpop_required": false, "audiences": list("urn:a")}, list("audiences", "dpop_required")},
		} {
			changed := w.patch(path, c.body, asKey(w.key)).is(200)
			l.gains(changed, "api_key", fields{"type": "agent.changed", "data": fields{"changed": c.changed}})
			for field, given := range c.body {
				if got, want := jsonOf(t, changed.object()[field]), jsonOf(t, given); got != want && want != "false" {
					t.Errorf("%s is %s, want %s", field, got, want)
				}
			}
			wantSameAnswer(t, changed, w.patch(path, c.body, asKey(w.key)))
			wantSameAnswer(t, changed, w.get(path, asKey(w.key)))
			l.gainsNothing("the same change again")
		}
		shown := w.get(path, asKey(w.key)).is(200).object()
		for _, field := range []string{"jwks", "jwks_uri", "dpop_required"} {
			if value, is := shown[field]; is {
				t.Errorf("%s is still %v", field, value)
			}
		}
	})
}

func TestUnusableCredentialsOfAnAgentAreRefusedByTheirField(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		path := "/v1/agents/" + w.agent.id
		before := w.get(path, asKey(w.key)).is(200)
		seventeen := make([]any, 17)
		for i := range seventeen {
			seventeen[i] = fmt.Sprintf("https://a.example/%d", i)
		}
		for name, c := range map[string]struct {
			field string
			value any
			wrong string
		}{
			"private key":         {"jwks", keySet(named(anECKey, "a"), named(strings.Replace(anEd25519Key, "{", `{"d":"AA",`, 1), "b")), "jwks.keys[1]"},
			"symmetric key":       {"jwks", keySet(`{"kty":"oct","k":"AAAA"}`), "jwks.keys[0]"},
			"no keys":             {"jwks", keySet(), "jwks"},
			"nine keys":           {"jwks", keySet(strings.Split(strings.Repeat(anECKey+"\n", 8)+anECKey, "\n")...), "jwks"},
			"an array":            {"jwks", list(), "jwks"},
			"a text":              {"jwks", "{}", "jwks"},
			"a member twice":      {"jwks", json.RawMessage(`{"keys":[{"kty":"OKP","kty":"OKP"}]}`), "jwks.keys[0].kty"},
			"http":                {"jwks_uri", "http://keys.example.com/", "jwks_uri"},
			"long":                {"jwks_uri", "https://keys.example.com/" + strings.Repeat("x", 488), "jwks_uri"},
			"no URL":              {"jwks_uri", "keys", "jwks_uri"},
			"password":            {"jwks_uri", "https://a:b@keys.example.com/", "jwks_uri"},
			"empty":               {"jwks_uri", "", "jwks_uri"},
			"17 audiences":        {"audiences", seventeen, "audiences"},
			"the same twice":      {"audiences", list("urn:a", "urn:b", "urn:a"), "audiences[2]"},
			"a name":              {"audiences", list("payments"), "audiences[0]"},
			"no text":             {"audiences", list(""), "audiences[0]"},
			"scheme alone":        {"audiences", list("urn:"), "audiences[0]"},
			"relative":            {"audiences", list("//a.example/x"), "audiences[0]"},
			"fragment":            {"audiences", list("https://a.example/#x"), "audiences[0]"},
			"empty fragment":      {"audiences", list("https://a.example/#"), "audiences[0]"},
			"http elsewhere":      {"audiences", list("http://a.example/"), "audiences[0]"},
			"no host":             {"audiences", list("https:///x"), "audiences[0]"},
			"a space":             {"audiences", list("https://a.example/a b"), "audiences[0]"},
			"not ASCII":           {"audiences", list("https://ä.example/"), "audiences[0]"},
			"257 bytes":           {"audiences", list("https://a.example/" + strings.Repeat("x", 239)), "audiences[0]"},
			"a number":            {"audiences", []any{7}, "audiences[0]"},
			"null among them":     {"audiences", []any{nil}, "audiences[0]"},
			"null":                {"dpop_required", nil, "dpop_required"},
			"a text for a switch": {"dpop_required", "true", "dpop_required"},
		} {
			body := fields{c.field: c.value}
			if w.patch(path, body, asKey(w.key)).invalid(c.wrong); t.Failed() {
				t.Fatalf("%s: a change with %v", name, body)
			}
			w.post("/v1/agents", fields{"name": "scout", "scopes": list()}.with(body), asKey(w.key)).invalid(c.wrong)
		}
		both := fields{"jwks": keySet(anECKey), "jwks_uri": "https://a.example/"}
		w.patch(path, both, asKey(w.key)).invalid("jwks_uri")
		w.post("/v1/agents", fields{"name": "scout", "scopes": list()}.with(both), asKey(w.key)).invalid("jwks_uri")
		w.patch(path, fields{"secret": false}, asKey(w.key)).invalid("secret")
		wantSameAnswer(t, before, w.get(path, asKey(w.key)))
	})
}
