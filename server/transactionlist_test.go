package server_test

import (
	"net/url"
	"testing"
)

func TestAListOfTransactionsLeavesStatesAndMetadataOut(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, id := asAgent(w.exchange().access), w.newSession(nil)
		for _, as := range []option{asKey(w.key), access} {
			if r := w.get("/v1/transactions", as).is(200); string(r.body) != "[]" {
				t.Errorf("at first: %s, want []", r.body)
			}
		}
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2, "metadata": fields{"k": "v"}}).is(201).text("id")
		path := "/v1/transactions/" + begun
		for _, settle := range []func() *response{
			func() *response { return w.get(path, access) },
			func() *response {
				return w.post(path+"/commit", fields{"value_usd": 200, "post_state": fields{"k": "v"}}, access)
			},
			func() *response { return w.post(path+"/rollback", fields{"reason": "r"}, asKey(w.key)) },
		} {
			want := settle().is(200).object().without("pre_state", "post_state", "metadata")
			for _, as := range []option{asKey(w.key), access} {
				for _, query := range []string{"", "?agent_id=" + w.agent.id, "?session_id=" + id} {
					listed := w.get("/v1/transactions"+query, as).is(200).array()
					if len(listed) != 1 {
						t.Fatalf("%s: %d transactions, want 1", query, len(listed))
					}
					if found := differences(listed[0], want); found != "" {
						t.Errorf("%s: %s", query, found)
					}
				}
			}
		}
	})
}

func TestAListOfTransactionsIsFilteredAndFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		key, access, theirs := asKey(w.key), asAgent(w.exchange().access), asAgent(w.exchangeFor(w.newAgent()).access)
		session := w.newSession(nil)
		begin := func(as option, settings fields) string { return w.beginAs(as, settings).is(201).text("id") }
		free, held, other := begin(access, nil), begin(access, fields{"session_id": session}), begin(theirs, nil)
		last := begin(access, fields{"session_id": session})
		w.post("/v1/transactions/"+held+"/commit", nil, access).is(200)
		w.post("/v1/transactions/"+free+"/rollback", nil, key).is(200)

		const path = "/v1/transactions"
		mine := "&agent_id=" + w.agent.id
		w.wantPages(path+"?limit=2", key, []string{last, other}, []string{held, free})
		w.wantPages(path+"?limit=2", access, []string{last, held}, []string{free})
		w.wantPages(path, theirs, []string{other})
		for status, want := range map[string][]string{"committed": {held}, "rolled_back": {free}, "expired": {}, "pending": {last}} {
			w.wantPages(path+"?status="+status+mine, key, want)
			w.wantPages(path+"?status="+status, access, want)
		}
		w.wantPages(path+"?limit=1&session_id="+session, key, []string{last}, []string{held})
		w.wantPages(path+"?status=pending&session_id="+session+mine, key, []string{last})
	})
}

func TestTheNextLinkOfTransactionsKeepsTheFilters(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, session := asAgent(w.exchange().access), w.newSession(nil)
		for range 2 {
			w.beginAs(access, fields{"session_id": session}).is(201)
		}
		r := w.get("/v1/transactions?status=pending&limit=1&session_id="+session+"&agent_id="+w.agent.id, access).is(200)
		parts := nextLink.FindStringSubmatch(r.header.Get("Link"))
		if parts == nil {
			t.Fatalf("Link %q", r.header.Get("Link"))
		}
		next := must(url.Parse(parts[1]))(t)
		query := next.Query()
		if next.Path != "/v1/transactions" || query.Get("status") != "pending" || query.Get("limit") != "1" ||
			query.Get("session_id") != session || query.Get("agent_id") != w.agent.id || query.Get("cursor") == "" || len(query) != 5 {
			t.Errorf("the next page is at %s", next)
		}
	})
}
