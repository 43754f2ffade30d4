package server_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
)

// introspectors are the two faces of introspection: by an organization's key, and by an OAuth client, which may be
// another agent of the organization.
func introspectors(w tenant) map[string]func(token string) *response {
	colleague := w.newAgent()
	return map[string]func(string) *response{
		"by key": func(text string) *response {
			w.t.Helper()
			return w.post("/v1/auth/introspect", fields{"token": text}, asKey(w.key)).is(200)
		},
		"by key, with a hint": func(text string) *response {
			w.t.Helper()
			return w.post("/v1/auth/introspect", fields{"token": text, "token_type_hint": "refresh_token"}, asKey(w.key)).is(200)
		},
		"by the client": func(text string) *response {
			w.t.Helper()
			return w.postForm("/oauth2/introspect", form("token", text), byBasic(w.agent)).is(200)
		},
		"by another client of the organization": func(text string) *response {
			w.t.Helper()
			return w.postForm("/oauth2/introspect", byPost(colleague, "token", text, "token_type_hint", "access_token")).is(200)
		},
	}
}

// onEachIntrospector runs the test with each face, here and on a second instance.
func onEachIntrospector(t *testing.T, with setup, test func(t *testing.T, w tenant, ask func(token string) *response)) {
	t.Helper()
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		for _, at := range []tenant{w, there} {
			for name, ask := range introspectors(at) {
				t.Run(name, func(t *testing.T) {
					test(t, w.through(w.in(t)), func(text string) *response {
						t.Helper()
						r := ask(text)
						if got := r.header.Get("Cache-Control"); got != "no-store" {
							t.Errorf("Cache-Control %q", got)
						}
						return r.in(t)
					})
				})
			}
		}
	})
}

// inactive fails the test unless the response is only {"active":false}.
func (r *response) inactive() {
	r.t.Helper()
	if string(r.body) != `{"active":false}` {
		r.t.Errorf("%s: %s", r.what, r.body)
	}
}

// described is what introspection says of every live token of the agent.
func (w tenant) described(scope string) fields {
	return fields{"active": true, "scope": scope, "client_id": w.agent.id, "sub": w.agent.id, "iss": issuer, "aud": issuer,
		"agent_id": w.agent.id, "org_id": w.org}
}

// aboutSecondsIn is a time in seconds since 1970, as far ahead.
func aboutSecondsIn(ahead time.Duration) matcher {
	return matcher{"seconds since 1970 in about " + ahead.String(), func(value any) bool {
		number, _ := value.(json.Number)
		seconds, err := number.Int64()
		return err == nil && time.Until(time.Unix(seconds, 0).Add(-ahead)).Abs() < time.Minute
	}}
}

func TestIntrospectionDescribesALiveToken(t *testing.T) {
	t.Parallel()
	onEachIntrospector(t, setup{}, func(t *testing.T, w tenant, ask func(string) *response) {
		for scope, tokens := range map[string]pair{
			"read write": w.exchange(),
			"write":      w.grant("write").granted(w.client, "write"),
		} {
			_, claims := verify(t, w.client, tokens.access)
			ask(tokens.access).exactly(w.described(scope).with(fields{
				"token_type": "Bearer", "iat": num(unix(t, claims, "iat")), "exp": num(unix(t, claims, "exp")),
			}))
			ask(tokens.refresh).exactly(w.described(scope).with(fields{
				"token_type": "refresh_token", "exp": aboutSecondsIn(7 * 24 * time.Hour),
			}))
			w.renew(tokens.refresh).granted(w.client, strings.Fields(scope)...) // for asking spends nothing
		}
	})
}

// A refresh may narrow its own access token; the refresh token stands for the whole of the family.
func TestIntrospectionReturnsTheScopesOfEachToken(t *testing.T) {
	t.Parallel()
	onEachIntrospector(t, setup{}, func(t *testing.T, w tenant, ask func(string) *response) {
		narrowed := w.renew(w.exchange().refresh, "read").granted(w.client, "read")
		for text, scope := range map[string]string{narrowed.access: "read", narrowed.refresh: "read write"} {
			if got := ask(text).text("scope"); got != scope {
				t.Errorf("scope %q, want %q", got, scope)
			}
		}
	})
}

func TestIntrospectionOfAnInactiveTokenRevealsNothing(t *testing.T) {
	t.Parallel()
	onEachIntrospector(t, setup{store: redisstore.Config{RefreshGrace: time.Minute}},
		func(t *testing.T, w tenant, ask func(string) *response) {
			spent := w.exchange()
			live := pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": spent.refresh}).is(200))
			revoked := w.exchange()
			w.postForm("/oauth2/revoke", form("token", revoked.refresh), byBasic(w.agent)).is(200)
			dead := w.newAgent()
			deads := w.exchangeFor(dead)
			w.delete("/v1/agents/"+dead.id, asKey(w.key)).is(200)
			foreign := w.newTenant().exchange()
			unknown := w.on.keyring.FormatRefresh(token.RefreshToken{
				Agent: uuid.MustParse(w.agent.id), Family: uuid.New(), Generation: 1,
			})
			for name, text := range map[string]string{
				"spent refresh token":                spent.refresh,
				"refresh token of a revoked family":  revoked.refresh,
				"access token of a revoked family":   revoked.access,
				"refresh token of a revoked agent":   deads.refresh,
				"access token of a revoked agent":    deads.access,
				"foreign refresh token":              foreign.refresh,
				"foreign access token":               foreign.access,
				"expired access token":               w.expired(t),
				"refresh token of an unknown family": unknown,
				"misspelt refresh token":             misspelt(live.refresh)[0],
				"forged access token":                otherSignature(live.access),
				"garbage":                            "x",
				"garbage with the prefix":            "rmr_",
				"an API key":                         w.key,
				"a secret":                           w.agent.secret,
			} {
				t.Run(name, func(t *testing.T) { ask(text).in(t).inactive() })
			}
			for _, text := range []string{live.access, live.refresh, spent.access} {
				if ask(text).object()["active"] != true {
					t.Error("a live token is not active")
				}
			}
		})
}

func TestIntrospectionOfAnExpiredRefreshTokenRevealsNothing(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{RefreshLifetime: 50 * time.Millisecond}}
	onEachIntrospector(t, with, func(t *testing.T, w tenant, ask func(string) *response) {
		tokens := w.exchange()
		if w.on.mini != nil {
			w.on.mini.FastForward(time.Second)
		}
		eventually(t, "the refresh token has expired", func() bool { return ask(tokens.refresh).object()["active"] == false })
		ask(tokens.refresh).inactive()
	})
}

func TestIntrospectionRevealsNothingWithoutAValidKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, stranger := api.newTenant(), api.newTenant()
		tokens := w.exchange()
		rotated := w.post("/v1/organizations/"+w.org+"/api-key/rotate", fields{"grace_seconds": 0}, asKey(w.key)).is(200).text("api_key")
		for name, test := range map[string]struct {
			as   option
			code string
		}{
			"no key":                           {anonymous, "missing_credentials"},
			"an access token":                  {asAgent(tokens.access), "missing_credentials"},
			"a key that none can be":           {asKey("rmk_x"), "invalid_api_key"},
			"a key that was rotated":           {asKey(w.key), "invalid_api_key"},
			"a key of no organization":         {asKey(newKeyOf(uuid.MustParse(w.org))), "invalid_api_key"},
			"a key of an unknown organization": {asKey(newKeyOf(uuid.New())), "invalid_api_key"},
		} {
			t.Run(name, func(t *testing.T) {
				c := w.in(t)
				refused := c.post("/v1/auth/introspect", fields{"token": tokens.access}, test.as).refused(401, test.code)
				for _, text := range []string{tokens.refresh, "x", stranger.key} {
					wantSameAnswer(t, refused, c.post("/v1/auth/introspect", fields{"token": text}, test.as))
				}
			})
		}
		w.post("/v1/auth/introspect", fields{"token": tokens.access}, asKey(stranger.key)).is(200).inactive()
		w.post("/v1/auth/introspect", fields{"token": ""}, asKey(rotated)).is(200).inactive()
		if w.post("/v1/auth/introspect", fields{"token": tokens.access}, asKey(rotated)).is(200).object()["active"] != true {
			t.Error("the new key is told nothing")
		}
	})
}
