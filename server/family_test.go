package server_test

import (
	"strings"
	"testing"
	"time"

	"remit/redisstore"
)

func TestFamiliesAreListedForTheirOrganization(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		path := "/v1/agents/" + w.agent.id + "/families"
		if r := w.get(path, asKey(w.key)).is(200); string(r.body) != "[]" {
			t.Errorf("%s: %s, want []", path, r.body)
		}
		first, second := w.exchange(), w.exchange()
		page := path + "?limit=1"
		for _, tokens := range []pair{second, first} { // newest first
			r := w.get(page, asKey(w.key)).is(200)
			want := fields{
				"family_id": tokens.family(), "created_at": aboutNow, "last_used_at": aboutNow, "expires_at": aboutIn(7 * 24 * time.Hour),
			}
			if found := differences(r.array()[0], want); found != "" || len(r.array()) != 1 {
				t.Errorf("%s: %s", r.body, found)
			}
			page = ""
			if next := nextLink.FindStringSubmatch(r.header.Get("Link")); next != nil {
				page = next[1]
			}
		}
		if page != "" {
			t.Errorf("the last page has a next one: %s", page)
		}
		w.get(path, asAgent(first.access)).refused(401, "missing_credentials")
	})
}

func TestDeletingAFamilyEndsItsTokensOnTheOtherInstanceAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		bystander, stolen := w.exchange(), w.exchange()
		path := "/v1/agents/" + w.agent.id + "/families/" + stolen.family()
		for range 2 {
			w.delete(path, asKey(w.key)).is(200).exactly(fields{"revoked": true})
		}
		there.get("/sessions", asAgent(stolen.access)).refused(401, "invalid_token")
		there.post("/v1/auth/refresh", fields{"refresh_token": stolen.refresh}).refused(401, "invalid_refresh_token")
		there.get("/sessions", asAgent(bystander.access)).is(200)
		there.post("/v1/auth/refresh", fields{"refresh_token": bystander.refresh}).is(200)
	})
}

func TestAnotherAgentsFamilyLooksUnknown(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		mine, theirs := w.exchange(), other.exchange()
		colleague := w.newAgent()
		for _, path := range []string{
			"/v1/agents/" + w.agent.id + "/families/" + theirs.family(),
			"/v1/agents/" + colleague.id + "/families/" + mine.family(),
			"/v1/agents/" + other.agent.id + "/families/" + theirs.family(),
		} {
			w.delete(path, asKey(w.key)).refused(404, "not_found")
		}
		w.get("/sessions", asAgent(mine.access)).is(200)
		other.get("/sessions", asAgent(theirs.access)).is(200)
	})
}

func TestASecretRotationRevokesAllFamiliesOnRequest(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		path := "/v1/agents/" + w.agent.id + "/secret/rotate"
		kept := w.exchange()
		w.agent.secret = w.post(path, fields{"revoke_families": false}, asKey(w.key)).is(200).text("secret")
		w.get("/sessions", asAgent(kept.access)).is(200)

		stolen := []pair{kept, w.exchange(), w.exchange()}
		rotated := w.post(path, fields{"revoke_families": true}, asKey(w.key)).is(200)
		rotated.exactly(fields{"id": w.agent.id, "secret": aSecret, "previous_expires_at": aboutNow})
		for _, tokens := range stolen {
			there.get("/sessions", asAgent(tokens.access)).refused(401, "invalid_token")
			there.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).refused(401, "invalid_refresh_token")
		}
		there.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).refused(401, "invalid_credentials")
		fresh := there.exchangeFor(agent{w.agent.id, rotated.text("secret")})
		w.get("/sessions", asAgent(fresh.access)).is(200)
		w.post("/v1/auth/refresh", fields{"refresh_token": fresh.refresh}).is(200)
	})
}

func TestAReplayIsCountedAndIsAnEvent(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{RefreshGrace: time.Minute}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		tokens := w.exchange()
		w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200)
		l := w.trail()
		w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200)
		events := l.unread()
		if typesOf(events) != "token.replayed" || events[0]["family_id"] != tokens.family() {
			t.Fatalf("a replay leaves %v", events)
		}
		if found := differences(events[0]["data"].(map[string]any), fields{"spent_at": aboutNow}); found != "" {
			t.Errorf("%s in %v", found, events)
		}
		w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200)
		l.gainsNothing("the same again")
		if _, counted := scraped(t, api.on.address, "GET", "/metrics"); !strings.Contains(counted, "\nremit_refresh_tokens_replayed_total 2\n") {
			t.Errorf("the two replays are not counted in %s", counted)
		}
	})
}

func TestAKeyInGraceDoesNotRotateOnceItsSuccessorIsUsed(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		path := "/v1/organizations/" + w.org + "/api-key/rotate"
		rotate := func(key string) string {
			return w.post(path, fields{"grace_seconds": 60}, asKey(key)).is(200).text("api_key")
		}
		lost := rotate(w.key)
		fresh := rotate(w.key) // the answer was lost
		w.get("/v1/agents", asKey(lost)).refused(401, "invalid_api_key")
		w.get("/v1/agents", asKey(fresh)).is(200)
		there.post(path, fields{"grace_seconds": 0}, asKey(w.key)).refused(403, "forbidden")
		w.get("/v1/agents", asKey(w.key)).is(200)
		w.get("/v1/agents", asKey(rotate(fresh))).is(200)
	})
}
