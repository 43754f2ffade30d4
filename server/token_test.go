package server_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
)

var aPair = fields{
	"access_token": anAccessToken, "refresh_token": aRefreshToken, "token_type": "bearer", "expires_in": 3600,
}

func TestExchangeAnswersATokenPair(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		r := w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).is(200).exactly(aPair)
		if got := r.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control %q", got)
		}
		w.get("/sessions", asAgent(r.text("access_token"))).is(200)
	})
}

func TestExchangeRefusalsAreIdentical(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		revoked := w.newAgent()
		w.delete("/v1/agents/"+revoked.id, asKey(w.key)).is(200)
		ask := func(a agent) *response {
			t.Helper()
			return w.post("/v1/auth/token", fields{"agent_id": a.id, "secret": a.secret}).refused(401, "invalid_credentials")
		}
		wrong := ask(agent{w.agent.id, token.NewAgentSecret()})
		for name, a := range map[string]agent{
			"unknown agent":      {uuid.NewString(), token.NewAgentSecret()},
			"revoked agent":      revoked,
			"revoked, wrong":     {revoked.id, token.NewAgentSecret()},
			"another's secret":   {w.agent.id, w.newAgent().secret},
			"an organization":    {w.org, w.agent.secret},
			"malformed secret":   {w.agent.id, "rms_short"},
			"empty secret":       {w.agent.id, ""},
			"an API key":         {w.agent.id, w.key},
			"one character more": {w.agent.id, w.agent.secret + "0"},
		} {
			t.Run(name, func(t *testing.T) { wantSameAnswer(t, wrong, ask(a)) })
		}
		w.exchange()
	})
}

func TestRefreshSpendsTheTokenAndAnswersANewPair(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		first := w.exchange()
		r := w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(200).exactly(aPair)
		second := pairIn(r)
		if got := r.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control %q", got)
		}
		if second.refresh == first.refresh || second.access == first.access {
			t.Error("a token of the new pair is an old one")
		}
		for _, access := range []string{first.access, second.access} {
			w.get("/sessions", asAgent(access)).is(200)
		}
		w.post("/v1/auth/refresh", fields{"refresh_token": second.refresh}).is(200)
	})
}

func TestRefreshWithinTheGraceAnswersTheSameSuccessorOnEachInstance(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{RefreshGrace: 30 * time.Minute}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		first := w.exchange()
		refresh := func(at tenant, token string) pair {
			t.Helper()
			return pairIn(at.post("/v1/auth/refresh", fields{"refresh_token": token}).is(200).exactly(aPair))
		}
		second := refresh(w, first.refresh)
		for _, at := range []tenant{there, w, there} {
			again := refresh(at, first.refresh)
			if again.refresh != second.refresh {
				t.Error("the lost answer is given again with another refresh token")
			}
			at.get("/sessions", asAgent(again.access)).is(200)
		}
		refresh(there, second.refresh)
		w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).refused(401, "invalid_refresh_token")
	})
}

func TestReuseEndsTheFamilyOnTheOtherInstanceAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) { // whose setup has no grace
		w := api.newTenant()
		there := w.through(api.another(t))
		bystander, first := w.exchange(), w.exchange()
		second := pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(200))
		there.get("/sessions", asAgent(second.access)).is(200)

		reused := w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).refused(401, "invalid_refresh_token")

		wantSameAnswer(t, reused, there.post("/v1/auth/refresh", fields{"refresh_token": second.refresh}))
		session, transaction := w.newSession(nil), w.begin(nil)
		for _, e := range append(endpointsOfBoth(w, session, transaction), endpointsOfAgents(w, session, transaction)...) {
			for _, access := range []string{first.access, second.access} {
				there.ask(e.method, e.path, e.body, asAgent(access)).refused(401, "invalid_token")
			}
		}
		there.get("/sessions", asAgent(bystander.access)).is(200)
		there.post("/v1/auth/refresh", fields{"refresh_token": bystander.refresh}).is(200)
		there.exchange()
	})
}

func TestRevokeEndsTheFamilyOnTheOtherInstanceAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		bystander, tokens := w.exchange(), w.exchange()

		w.post("/v1/auth/revoke", fields{"refresh_token": tokens.refresh}, asAgent(tokens.access)).is(200).
			exactly(fields{"revoked": true})

		there.get("/sessions", asAgent(tokens.access)).refused(401, "invalid_token")
		there.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).refused(401, "invalid_refresh_token")
		there.get("/sessions", asAgent(bystander.access)).is(200)
		there.post("/v1/auth/refresh", fields{"refresh_token": bystander.refresh}).is(200)
	})
}

func TestRevokeIsIdempotent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		own, other := w.exchange(), w.exchange()
		for _, unwanted := range []pair{other, own} {
			for _, at := range []tenant{w, there, w} {
				at.post("/v1/auth/revoke", fields{"refresh_token": unwanted.refresh}, asAgent(own.access)).is(200).
					exactly(fields{"revoked": true})
			}
		}
		w.post("/v1/auth/revoke", fields{"refresh_token": other.refresh}, asAgent(own.access)).refused(401, "invalid_token")
	})
}

func TestRevokeOfAnotherAgentsTokenIsForbidden(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, stranger := api.newTenant(), api.newTenant()
		mine, theirs, colleagues := w.exchange(), stranger.exchange(), w.exchangeFor(w.newAgent())
		for _, foreign := range []pair{theirs, colleagues} {
			w.post("/v1/auth/revoke", fields{"refresh_token": foreign.refresh}, asAgent(mine.access)).refused(403, "forbidden")
			w.get("/sessions", asAgent(foreign.access)).is(200)
			w.post("/v1/auth/refresh", fields{"refresh_token": foreign.refresh}).is(200)
		}
	})
}
