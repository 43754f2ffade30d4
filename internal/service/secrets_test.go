package service

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/internal/token"
	"remit/test/serviceproc"
)

// TestNoCredentialReachesOutputOrRedis calls endpoints, in success and refusal, and looks for what it used in all that the service
// printed, in all that Redis keeps, in the metrics, and in all that was sent to a collector of traces. That no endpoint logs a
// credential is TestNoCredentialReachesTheLog of package server.
func TestNoCredentialReachesOutputOrRedis(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	signing, tokenKey := must(token.GenerateSigningKey(token.Ed25519))(t), string(token.GenerateRefreshKey())
	const bootstrap = "bootstrap-0123456789abcdef"
	traces := startCollector(t)
	p := start(t, []string{"REMIT_REDIS_URL=" + url, "REMIT_LOG_LEVEL=debug", "REMIT_ACCESS_LOG=all", "REMIT_OTLP_ENDPOINT=" + traces.url},
		"--signing-key", writeFile(t, string(signing)), "--token-key", writeFile(t, tokenKey),
		"--organizations", "token", "--bootstrap-token", writeFile(t, bootstrap)).ready(t)

	d := &driver{Caller: serviceproc.Caller{T: t, URL: p.url}, bootstrap: bootstrap}
	d.callEndpoints()
	if kid, given := kidOf(t, d.Kept["access token"]), must(token.ParseSigningKey(signing))(t); kid != given.String() || strings.Contains(p.Stderr(), "one trust domain") {
		t.Errorf("it signs with %s, not with the given %s:\n%s", kid, given, p.Stderr())
	}
	block, _ := pem.Decode(signing)
	d.Kept["signing key"] = base64.StdEncoding.EncodeToString(block.Bytes)
	d.Kept["signing key bytes"] = string(block.Bytes[len(block.Bytes)-32:])
	d.Kept["token key"] = strings.TrimSpace(tokenKey)
	raw, _ := base64.StdEncoding.DecodeString(d.Kept["token key"])
	d.Kept["token key bytes"] = string(raw)
	d.Kept["bootstrap token"] = d.bootstrap

	status, scrape := p.get(t, "/metrics")
	if status != http.StatusOK || !strings.Contains(scrape, `remit_charges_total{outcome="allowed"}`) {
		t.Fatalf("no metrics: %d %s", status, scrape)
	}
	for name, id := range d.ids { // no secrets, but metrics do not name tenants
		if id == "" || strings.Contains(scrape, id) {
			t.Errorf("the metrics name the %s", name)
		}
	}
	p.stopWell(t)
	places := map[string]string{
		"stdout": p.Stdout(), "stderr": p.Stderr(), "Redis": everythingIn(t, url), "metrics": scrape,
		"the traces": traces.everything(),
	}
	if len(places["stderr"]) == 0 || !strings.Contains(places["Redis"], "acme") || len(traces.taken()) < 100 {
		t.Fatal("there is nothing to look through")
	}
	for _, kept := range []string{"first-key", "acme", "another request"} { // of keys and bodies
		if strings.Contains(places["the traces"], kept) {
			t.Errorf("the traces tell %q", kept)
		}
	}
	for place, text := range places {
		for name, secret := range d.Kept {
			if secret == "" || strings.Contains(text, secret) {
				t.Errorf("%s holds the %s", place, name)
			}
		}
	}
}

func TestMalformedTraceSettingsAreNotLogged(t *testing.T) {
	t.Parallel()
	for setting, told := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization: Bearer SECRET123":           "parse headers",
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer SECRET%SECRET":        "escape header value",
		"OTEL_EXPORTER_OTLP_HEADERS=Bearer SECRET123=x":                        "parse headers",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://user:SECRET@collector%:1/x": "parse url",
	} {
		p := start(t, []string{"PATH=" + t.TempDir(), "REMIT_OTLP_ENDPOINT=http://127.0.0.1:1", "REMIT_LOG_LEVEL=debug-5", setting}).ready(t)
		p.stopWell(t)
		if log := p.Stderr(); !strings.Contains(log, "OpenTelemetry: "+told) || strings.Contains(log, "SE") {
			t.Errorf("%s: the log says\n%s", setting, log)
		}
	}
}

// driver calls endpoints and keeps the credentials that it meets.
type driver struct {
	serviceproc.Caller
	bootstrap string
	ids       map[string]string // of an organization, an agent and a session
}

func (d *driver) callEndpoints() {
	d.T.Helper()
	d.Kept = map[string]string{}
	organization := d.Keep("first API key", "api_key", "/v1/organizations",
		map[string]string{"Authorization": "Bearer " + d.bootstrap}, `{"name":"acme","metadata":{"a":1}}`)
	d.Call(http.MethodPost, "/v1/organizations", map[string]string{"Authorization": "Bearer wrong-bootstrap-token"}, `{"name":"x"}`)
	ownPath := fmt.Sprint("/v1/organizations/", organization["id"])
	d.Keep("API key", "api_key", ownPath+"/api-key/rotate", map[string]string{"X-API-Key": d.Kept["first API key"]}, `{}`)
	asKey := map[string]string{"X-API-Key": d.Kept["API key"]}
	agent := d.Keep("first agent secret", "secret", "/v1/agents", asKey, `{"name":"scout","scopes":["read","transactions:rollback"]}`)
	agentPath := fmt.Sprint("/v1/agents/", agent["id"])
	d.Keep("agent secret", "secret", agentPath+"/secret/rotate", asKey, `{"grace_seconds":60}`)

	exchange := fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, agent["id"], d.Kept["agent secret"])
	d.Keep("access token", "access_token", "/v1/auth/token", nil, exchange)
	tokens := d.Keep("refresh token", "refresh_token", "/v1/auth/token", nil, exchange)
	refresh := fmt.Sprintf(`{"refresh_token":%q}`, d.Kept["refresh token"])
	d.Keep("second access token", "access_token", "/v1/auth/refresh", nil, refresh)
	d.Keep("second refresh token", "refresh_token", "/v1/auth/refresh", nil, refresh)
	asAgent := map[string]string{"Authorization": fmt.Sprint("Bearer ", tokens["access_token"])}
	_, session := d.Call(http.MethodPost, "/sessions", asKey, fmt.Sprintf(`{"agent_id":%q,"max_actions":5}`, agent["id"]))
	sessionPath := fmt.Sprint("/sessions/", session["id"])
	d.ids = map[string]string{
		"organization": fmt.Sprint(organization["id"]), "agent": fmt.Sprint(agent["id"]), "session": fmt.Sprint(session["id"]),
	}

	d.Keep("session key", "key", sessionPath+"/keys", map[string]string{"X-API-Key": d.Kept["API key"], "Idempotency-Key": "second-key"}, `{"name":"editor"}`)
	asSessionKey := map[string]string{"Authorization": fmt.Sprint("Bearer ", d.Kept["session key"])}

	basic := map[string]string{
		"Authorization": "Basic " + base64.StdEncoding.EncodeToString(fmt.Append(nil, agent["id"], ":", d.Kept["agent secret"])),
		"Content-Type":  "application/x-www-form-urlencoded",
	}
	d.Keep("OAuth refresh token", "refresh_token", "/oauth2/token", basic, "grant_type=client_credentials")
	for _, header := range []map[string]string{asKey, asAgent, asSessionKey, basic, nil, {"X-API-Key": "rmk_nonsense"}, {"Authorization": "Bearer a.b.c"}} {
		for _, get := range []string{ownPath, "/v1/agents", agentPath, agentPath + "/events", "/sessions", sessionPath, "/v1/auth/verify",
			"/v1/auth/authorize?session_id=" + fmt.Sprint(session["id"]), "/.well-known/jwks.json",
			"/.well-known/oauth-authorization-server", "/healthz", "/readyz", "/metrics", "/nowhere"} {
			d.Call(http.MethodGet, get, header, "")
		}
		d.Call(http.MethodPost, sessionPath+"/actions", header, `{"value_usd":0.1}`)
		once := map[string]string{"Idempotency-Key": "first-key"}
		maps.Copy(once, header)
		_, begun := d.Call(http.MethodPost, "/v1/transactions", once, fmt.Sprintf(`{"action_type":"pay","pre_state":{"a":1},"session_id":%q}`, session["id"]))
		transaction := fmt.Sprint("/v1/transactions/", begun["id"])
		d.Call(http.MethodPost, transaction+"/commit", once, `{"value_usd":0.2,"post_state":{"a":2}}`)
		d.Call(http.MethodPost, transaction+"/rollback", header, `{"reason":"another request"}`)
		d.Call(http.MethodPost, "/v1/actions", once, fmt.Sprintf(`{"actions":[{"session_id":%q},{"session_id":"x"}]}`, session["id"]))
		d.Call(http.MethodPost, "/v1/auth/introspect", header, fmt.Sprintf(`{"token":%q}`, d.Kept["access token"]))
		d.Call(http.MethodPost, "/oauth2/introspect", header, "token="+d.Kept["second refresh token"])
		d.Call(http.MethodPost, "/v1/auth/token", header, strings.Replace(exchange, "rms_", "rms_x", 1))
	}
	d.Call(http.MethodPost, "/v1/auth/revoke", asAgent, refresh)
	d.Call(http.MethodPost, "/oauth2/revoke", basic, "token="+d.Kept["OAuth refresh token"])
	d.Call(http.MethodPost, "/v1/auth/refresh", nil, refresh) // of a revoked family
	d.Call(http.MethodPost, sessionPath+"/end", asKey, "")
	d.Call(http.MethodPost, agentPath+"/revoke", asKey, "")
}

// everythingIn returns all keys of a Redis with all that they hold, without what says that an instance is ready.
func everythingIn(t *testing.T, url string) string {
	t.Helper()
	client, ctx := redis.NewClient(must(redis.ParseURL(url))(t)), t.Context()
	defer client.Close()
	all := map[string]any{}
	for _, key := range must(client.Keys(ctx, "*").Result())(t) {
		switch kind := client.Type(ctx, key).Val(); {
		case strings.HasPrefix(key, "remit:r:"):
		case kind == "hash":
			all[key] = client.HGetAll(ctx, key).Val()
		case kind == "zset":
			all[key] = client.ZRangeWithScores(ctx, key, 0, -1).Val()
		case kind == "string":
			all[key] = client.Get(ctx, key).Val()
		case kind == "stream":
			all[key] = client.XRange(ctx, key, "-", "+").Val()
		default:
			t.Errorf("%s is a %s, which this test does not read", key, kind)
		}
	}
	return fmt.Sprint(all)
}
