package server_test

import "testing"

func TestAListOfTransactionsLeavesStatesAndMetadataOut(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, id := asAgent(w.exchange().access), w.newSession(nil)
		for _, as := range []option{asKey(w.key), access} {
			w.get("/v1/transactions", as).is(200).isList(t)
		}
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2, "metadata": fields{"k": "v"}}).is(201).text("id")
		path := "/v1/transactions/" + begun
		for _, settle := range []struct {
			how  string
			body any
			as   option
		}{
			{"", nil, nil}, {"/commit", fields{"value_usd": 200, "post_state": fields{"k": "v"}}, access},
			{"/rollback", fields{"reason": "r"}, asKey(w.key)},
		} {
			if settle.how != "" {
				w.post(path+settle.how, settle.body, settle.as).is(200)
			}
			want := w.get(path, access).is(200).object().without("pre_state", "post_state", "metadata")
			for _, as := range []option{asKey(w.key), access} {
				for _, query := range []string{"", "?agent_id=" + w.agent.id, "?session_id=" + id} {
					w.get("/v1/transactions"+query, as).is(200).isList(t, want)
				}
			}
		}
	})
}

func TestAListOfTransactionsIsFilteredAndFollowedToItsEnd(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		key, access, theirs := asKey(w.key), asAgent(w.exchange().access), asAgent(w.exchangeFor(w.newAgent()).access)
		session := w.newSession(nil)
		begin := func(as option, settings fields) string { return w.beginAs(as, settings).is(201).text("id") }
		held, other, last := begin(access, fields{"session_id": session}), begin(theirs, nil), begin(access, fields{"session_id": session})
		w.post("/v1/transactions/"+held+"/commit", nil, access).is(200)
		const path = "/v1/transactions"
		w.wantPages(path+"?limit=2", key, []string{last, other}, []string{held})
		w.wantPages(path+"?limit=1", access, []string{last}, []string{held})
		w.wantPages(path+"?limit=1&session_id="+session, key, []string{last}, []string{held})
		for status, want := range map[string][]string{"committed": {held}, "rolled_back": {}, "expired": {}, "pending": {last}} {
			w.wantPages(path+"?status="+status+"&agent_id="+w.agent.id, key, want)
			w.wantPages(path+"?status="+status+"&session_id="+session, access, want)
		}
	})
}
