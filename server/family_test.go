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
