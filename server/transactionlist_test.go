package server_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/google/uuid"
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
		colleague := w
		colleague.agent = w.newAgent()
		key, access, theirs := asKey(w.key), asAgent(w.exchange().access), asAgent(colleague.exchange().access)
		session := w.newSession(nil)
		begin := func(as option, settings fields) string { return w.beginAs(as, settings).is(201).text("id") }
		settle := func(id, how string) { w.post("/v1/transactions/"+id+how, nil, asAgent(w.exchange().access)).is(200) }
		var all, mine, inSession []string // newest first
		for range 3 {
			free, held := begin(access, nil), begin(access, fields{"session_id": session})
			other := begin(theirs, nil)
			all = append([]string{other, held, free}, all...)
			mine = append([]string{held, free}, mine...)
			inSession = slices.Insert(inSession, 0, held)
		}
		settle(mine[0], "/commit")
		settle(mine[1], "/commit")
		w.post("/v1/transactions/"+mine[2]+"/rollback", nil, key).is(200)
		short := begin(access, fields{"expires_in_seconds": 1})
		eventually(t, "the transaction has expired", func() bool { return w.transaction(short)["status"] == "expired" })
		all, mine = slices.Insert(all, 0, short), slices.Insert(mine, 0, short)

		const path = "/v1/transactions"
		w.wantPages(path, key, all)
		w.wantPages(path+"?limit=4", key, all[:4], all[4:8], all[8:])
		w.wantPages(path+"?limit=10", key, all)
		w.wantPages(path+"?status=committed", key, mine[1:3])
		w.wantPages(path+"?status=committed&limit=1", key, mine[1:2], mine[2:3])
		w.wantPages(path+"?status=rolled_back", key, mine[3:4])
		w.wantPages(path+"?status=expired", key, mine[:1])
		w.wantPages(path+"?status=pending&agent_id="+w.agent.id, key, mine[4:])
		w.wantPages(path+"?limit=2&session_id="+session, key, inSession[:2], inSession[2:])
		w.wantPages(path+"?status=pending&session_id="+session+"&agent_id="+w.agent.id, key, inSession[2:])

		w.wantPages(path+"?limit=4", access, mine[:4], mine[4:])
		w.wantPages(path+"?agent_id="+w.agent.id+"&status=committed", access, mine[1:3])
		w.wantPages(path+"?status=expired", access, mine[:1])
		w.wantPages(path+"?status=rolled_back&session_id="+session, access, mine[3:4])
		w.wantPages(path, theirs, []string{all[1], all[4], all[7]})
		w.wantPages(path+"?status=committed", theirs, []string{})

		w.post("/sessions/"+session+"/end", nil, key).is(200)
		w.wantPages(path+"?status=rolled_back&session_id="+session, key, inSession[1:])
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

func TestAListForAnotherOrganizationsSessionOrAgentLooksUnknown(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		colleague := w
		colleague.agent = w.newAgent()
		key, access := asKey(w.key), asAgent(w.exchange().access)
		own, colleagues, theirs := w.newSession(nil), colleague.newSession(nil), other.newSession(nil)
		for _, test := range []struct {
			as             option
			query, unknown string
		}{
			{key, "session_id=" + theirs, "session_id=" + uuid.NewString()},
			{access, "session_id=" + theirs, "session_id=" + uuid.NewString()},
			{access, "session_id=" + colleagues, "session_id=" + uuid.NewString()},
			{key, "agent_id=" + other.agent.id, "agent_id=" + uuid.NewString()},
			{access, "agent_id=" + other.agent.id, "agent_id=" + uuid.NewString()},
			{access, "agent_id=" + colleague.agent.id, "agent_id=" + uuid.NewString()},
			{key, "agent_id=" + w.agent.id + "&session_id=" + theirs, "agent_id=" + w.agent.id + "&session_id=" + uuid.NewString()},
			{key, "agent_id=" + other.agent.id + "&session_id=" + own, "agent_id=" + uuid.NewString() + "&session_id=" + own},
		} {
			foreign := w.get("/v1/transactions?"+test.query, test.as).refused(404, "not_found")
			wantSameAnswer(t, foreign, w.get("/v1/transactions?"+test.unknown, test.as))
		}
	})
}
