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

func TestAnExchangeAndARefreshAnswerAPair(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		first := w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).is(200).exactly(aPair)
		second := w.post("/v1/auth/refresh", fields{"refresh_token": first.text("refresh_token")}).is(200).exactly(aPair)
		for _, r := range []*response{first, second} {
			w.get("/sessions", asAgent(r.text("access_token"))).is(200)
		}
		if pairIn(first).refresh == pairIn(second).refresh || pairIn(first).access == pairIn(second).access {
			t.Error("a token of the new pair is an old one")
		}
		w.post("/v1/auth/refresh", fields{"refresh_token": second.text("refresh_token")}).is(200)
	})
}

func TestExchangeRefusalsAreIdentical(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		revoked := w.newAgent()
		w.delete("/v1/agents/"+revoked.id, asKey(w.key)).is(200)
		ask := func(a agent) *response {
			t.Helper()
			return w.post("/v1/auth/token", fields{"agent_id": a.id, "secret": a.secret}).refused(401, "invalid_credentials")
		}
		wrong := ask(agent{w.agent.id, token.NewAgentSecret()})
		for _, a := range []agent{
			{uuid.NewString(), token.NewAgentSecret()}, revoked, {revoked.id, token.NewAgentSecret()}, {w.agent.id, w.newAgent().secret},
			{w.org, w.agent.secret}, {w.agent.id, "rms_short"}, {w.agent.id, ""}, {w.agent.id, w.key}, {w.agent.id, w.agent.secret + "0"},
		} {
			wantSameAnswer(t, wrong, ask(a))
		}
		w.exchange()
	})
}

func TestFamiliesAreListedForTheirOrganization(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		path := "/v1/agents/" + w.agent.id + "/families"
		w.get(path, asKey(w.key)).is(200).isList(t)
		first, second := w.exchange(), w.exchange()
		shown := func(tokens pair) fields {
			return fields{"family_id": tokens.family(), "created_at": aboutNow, "last_used_at": aboutNow, "expires_at": aboutIn(7 * 24 * time.Hour)}
		}
		page := w.get(path+"?limit=1", asKey(w.key)).is(200)
		page.isList(t, shown(second)) // newest first
		next := nextLink.FindStringSubmatch(page.header.Get("Link"))
		if next == nil {
			t.Fatalf("the first page has the Link %q", page.header.Get("Link"))
		}
		last := w.get(next[1], asKey(w.key)).is(200)
		if last.isList(t, shown(first)); last.header.Get("Link") != "" {
			t.Errorf("the last page has a next one: %s", last.header.Get("Link"))
		}
		w.get(path, asAgent(first.access)).refused(401, "missing_credentials")
	})
}

func TestAReplayGetsTheSameSuccessorIsCountedAndIsAnEvent(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{RefreshGrace: time.Minute}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		tokens := w.exchange()
		refresh := func(at tenant) string {
			next := pairIn(at.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200))
			at.get("/sessions", asAgent(next.access)).is(200)
			return next.refresh
		}
		successor := refresh(there)
		l := w.trail()
		if refresh(w) != successor {
			t.Error("the lost answer is given again with another refresh token")
		}
		events := l.unread()
		if typesOf(events) != "token.replayed" || events[0]["family_id"] != tokens.family() {
			t.Fatalf("a replay leaves %v", events)
		}
		wantFields(t, "data of the event", events[0]["data"].(map[string]any), fields{"spent_at": aboutNow})
		refresh(w)
		l.gainsNothing("the same again")
		w.wantMetrics("remit_refresh_tokens_replayed_total 2")
	})
}
