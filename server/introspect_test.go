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

// introspected returns what each face of introspection says of a token: by an organization's key, and by an OAuth client, which may be
// another agent of the organization.
func (w tenant) introspected(text string, colleague agent) []*response {
	w.t.Helper()
	answers := []*response{
		w.post("/v1/auth/introspect", fields{"token": text}, asKey(w.key)).is(200),
		w.post("/v1/auth/introspect", fields{"token": text, "token_type_hint": "refresh_token"}, asKey(w.key)).is(200),
		w.postForm("/oauth2/introspect", form("token", text), byBasic(w.agent)).is(200),
		w.postForm("/oauth2/introspect", byPost(colleague, "token", text, "token_type_hint", "access_token")).is(200),
	}
	for _, r := range answers {
		wantEqual(w.t, r.what+": Cache-Control", r.header.Get("Cache-Control"), "no-store")
	}
	return answers
}

// inactive fails the test unless the response is only {"active":false}.
func (r *response) inactive() {
	r.t.Helper()
	if string(r.body) != `{"active":false}` {
		r.t.Errorf("%s: %s", r.what, r.body)
	}
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
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		there, colleague := w.through(w.another(t)), w.newAgent()
		for _, scope := range []string{"read write", "write"} {
			tokens := w.grant(strings.Fields(scope)...).granted(w.client, strings.Fields(scope)...)
			_, claims := verify(t, w.client, tokens.access)
			said := fields{"active": true, "scope": scope, "client_id": w.agent.id, "sub": w.agent.id, "iss": issuer, "aud": issuer,
				"agent_id": w.agent.id, "org_id": w.org}
			for text, want := range map[string]fields{
				tokens.access:  {"token_type": "Bearer", "iat": num(unix(t, claims, "iat")), "exp": num(unix(t, claims, "exp"))},
				tokens.refresh: {"token_type": "refresh_token", "exp": aboutSecondsIn(7 * 24 * time.Hour)},
			} {
				for _, at := range []tenant{w, there} {
					for _, r := range at.introspected(text, colleague) {
						r.exactly(said.with(want))
					}
				}
			}
			// Asking spends nothing. A refresh may narrow its own access token; the refresh token stands for the whole of the family.
			narrowed := w.renew(tokens.refresh, "write").granted(w.client, "write")
			for text, scope := range map[string]string{narrowed.access: "write", narrowed.refresh: scope} {
				w.post("/v1/auth/introspect", fields{"token": text}, asKey(w.key)).is(200).has(fields{"scope": scope})
			}
		}
	})
}

func TestIntrospectionOfAnInactiveTokenRevealsNothing(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{RefreshGrace: time.Minute}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		there, colleague := w.through(api.another(t)), w.newAgent()
		spent, revoked, dead := w.exchange(), w.exchange(), w.newAgent()
		live := pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": spent.refresh}).is(200))
		w.postForm("/oauth2/revoke", form("token", revoked.refresh), byBasic(w.agent)).is(200)
		deads, foreign := w.exchangeFor(dead), api.newTenant().exchange()
		w.delete("/v1/agents/"+dead.id, asKey(w.key)).is(200)
		unknown := w.on.keyring.FormatRefresh(token.RefreshToken{Agent: uuid.MustParse(w.agent.id), Family: uuid.New(), Generation: 1})
		for _, text := range []string{
			spent.refresh, revoked.refresh, revoked.access, deads.refresh, deads.access, foreign.refresh, foreign.access, w.expired(t), unknown,
			otherByte(live.refresh, 10), otherSignature(live.access), "x", "rmr_", w.key, w.agent.secret,
		} {
			for _, at := range []tenant{w, there} {
				for _, r := range at.introspected(text, colleague) {
					r.inactive()
				}
			}
		}
		for _, text := range []string{live.access, live.refresh, spent.access} {
			there.post("/v1/auth/introspect", fields{"token": text}, asKey(w.key)).is(200).has(fields{"active": true})
		}
		w.post("/v1/auth/introspect", fields{"token": live.access}, asKey(api.newTenant().key)).is(200).inactive()
		w.post("/v1/auth/introspect", fields{"token": ""}, asKey(w.key)).is(200).inactive()
	})
}
