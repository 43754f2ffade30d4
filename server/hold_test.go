package server_test

import (
	"strings"
	"testing"
	"time"
)

func TestAPendingTransactionCanHoldMoreAndExpireLater(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, l := asAgent(w.exchange().access), w.trail()
		for _, test := range []struct{ change, want, data fields }{
			{fields{"value_usd": 4}, fields{"value_usd": 4, "value_held_usd": 4}, fields{"value_held_usd": num("4")}},
			{fields{"value_usd": num("0.5")}, fields{"value_usd": num("0.5"), "value_held_usd": num("0.5")},
				fields{"value_held_usd": num("0.5")}},
			{fields{"expires_in_seconds": 3600}, fields{"expires_at": aboutIn(time.Hour)}, fields{"value_held_usd": num("2")}},
			{fields{"value_usd": 3, "expires_in_seconds": 60},
				fields{"value_usd": 3, "value_held_usd": 3, "expires_at": aboutIn(time.Minute)}, fields{"value_held_usd": num("3")}},
		} {
			id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
			begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201)
			before, path := w.session(id), "/v1/transactions/"+begun.text("id")
			l.unread()
			changed := w.patch(path, test.change, access).is(200).exactly(begun.object().with(test.want))
			data := map[string]any(test.data.with(fields{"expires_at": changed.text("expires_at")}))
			if _, warned := test.want["value_held_usd"]; !warned || test.change["value_usd"] != 4 {
				l.gains(changed, "agent", fields{"type": "transaction.hold_changed", "session_id": id,
					"transaction_id": begun.text("id"), "data": data})
			}
			w.get(path, asKey(w.key)).is(200).exactly(changed.object())
			w.wantUsage(before, fields{"value_held_usd": changed.object()["value_held_usd"]})
			w.post(path+"/commit", nil, access).is(200).exactly(changed.object().
				with(fields{"status": "committed", "value_held_usd": 0, "committed_at": aboutNow}))
		}
	})
}

// The hold has expired, but the money is spent: the totals must include every spend.
func TestATransactionThatHasExpiredIsCommittedLate(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2, "expires_in_seconds": 1}).is(201)
		path := "/v1/transactions/" + begun.text("id")
		eventually(t, "it has expired", func() bool { return w.get(path, access).text("status") == "expired" })
		w.post("/sessions/"+id+"/actions", fields{"value_usd": 4}, access).is(200)
		before, l := w.session(id), w.trail()

		late := w.post(path+"/commit", fields{"value_usd": 3}, access).is(200).exactly(begun.object().with(fields{
			"status": "committed", "value_usd": 1, "value_held_usd": 0, "overage_usd": 2, "late": true, "committed_at": aboutNow,
		}))

		w.get(path, asKey(w.key)).is(200).exactly(late.object())
		w.wantUsage(before, fields{"value_used_usd": 5, "value_overage_usd": 2})
		w.wantPages("/v1/transactions?status=expired", asKey(w.key), []string{})
		w.wantPages("/v1/transactions?status=committed", asKey(w.key), []string{begun.text("id")})
		found := false
		for _, event := range l.unread() {
			data, _ := event["data"].(map[string]any)
			found = found || event["type"] == "transaction.committed" && data["late"] == true
		}
		if !found {
			t.Error("no event says that it was late")
		}
		w.post(path+"/commit", nil, access).refused(409, "transaction_not_pending").
			exactly(problemFields(409, "transaction_not_pending", fields{"transaction_status": "committed"}))
		w.post(path+"/rollback", nil, asKey(w.key)).is(200).exactly(late.object().
			with(fields{"status": "rolled_back", "rolled_back_at": aboutNow}))
		w.wantUsage(before, fields{"value_committed_usd": 5})
	})
}

func TestTheMetricsCountWhatBecomesOfHolds(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, id := asAgent(w.exchange().access), w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
		begin := func(settings fields) string {
			return "/v1/transactions/" + w.beginAs(access, fields{"session_id": id, "value_usd": 1}.with(settings)).is(201).text("id")
		}
		committed, rolledBack := begin(nil), begin(nil)
		w.post(committed+"/commit", nil, access).is(200)
		w.post(committed+"/rollback", nil, asKey(w.key)).is(200) // which finds no hold
		w.post(rolledBack+"/rollback", nil, access).is(200)
		late := begin(fields{"expires_in_seconds": 1})
		begin(fields{"expires_in_seconds": 1})
		w.beginAs(access, fields{"value_usd": 1}).is(201) // without a session it holds nothing
		eventually(t, "the holds have expired", func() bool { return w.session(id)["value_held_usd"] == num(0) })
		w.post(late+"/commit", nil, access).is(200)
		_, body := scraped(t, api.on.address, "GET", "/metrics")
		for _, line := range []string{
			`remit_holds_total{event="opened"} 4`, `remit_holds_total{event="committed"} 1`, `remit_holds_total{event="rolled_back"} 1`,
			`remit_holds_total{event="committed_late"} 1`, `remit_holds_expired_total 2`, `remit_hold_duration_seconds_count 2`,
		} {
			if !strings.Contains(body, "\n"+line+"\n") {
				t.Errorf("the metrics lack %s", line)
			}
		}
	})
}

// With on_expiry commit, what a hold that expires had reserved is spent, until its agent says once what it cost.
func TestAHoldThatExpiresIsSpentIfItsBeginSaysSo(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2, "expires_in_seconds": 1, "on_expiry": "commit"}).is(201)
		if begun.text("on_expiry") != "commit" {
			t.Errorf("it is begun as %s", begun.body)
		}
		path, list := "/v1/transactions/"+begun.text("id"), "/v1/transactions?settled_by=expiry"
		w.wantPages(list, asKey(w.key), []string{})
		w.post("/sessions/"+id+"/end", nil, asKey(w.key)).is(200)
		w.get("/v1/sessions/"+id, access).is(200).has(fields{"status": "completed", "value_held_usd": 2, "value_used_usd": 0})
		eventually(t, "it is spent", func() bool { return w.get(path, access).text("status") == "committed" })
		spent := begun.object().with(fields{"status": "committed", "value_held_usd": 0, "settled_by": "expiry", "committed_at": begun.text("expires_at")})
		w.get(path, asKey(w.key)).is(200).exactly(spent)
		w.get("/v1/sessions/"+id, access).is(200).has(fields{"value_held_usd": 0, "value_used_usd": 2, "value_committed_usd": 2})
		w.wantPages(list, asKey(w.key), []string{begun.text("id")})
		w.wantPages(list+"&status=committed", access, []string{begun.text("id")})

		corrected := w.post(path+"/commit", fields{"value_usd": num("0.5")}, access).is(200).exactly(
			spent.without("settled_by").with(fields{"value_usd": num("0.5"), "late": true, "committed_at": aboutNow}))
		w.get(path, asKey(w.key)).is(200).exactly(corrected.object())
		w.get("/v1/sessions/"+id, access).is(200).has(fields{"value_used_usd": num("0.5"), "value_committed_usd": num("0.5")})
		w.wantPages(list, asKey(w.key), []string{})
		w.post(path+"/commit", fields{"value_usd": 1}, access).refused(409, "transaction_not_pending")
	})
}

func TestWhatExpiryDoesIsOneOfTwoThings(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		id := w.newSession(nil)
		w.beginAs(access, fields{"on_expiry": "commit"}).invalid("on_expiry") // without a session nothing is held
		w.beginAs(access, fields{"session_id": id, "on_expiry": "release"}).is(201).exactly(newTransactionFields(w).with(fields{
			"session_id": id, "sequence_number": 1}))
		w.get("/v1/transactions?settled_by=hand", access).invalid("settled_by")
		w.get("/v1/sessions?settled_by=expiry", access).invalid("settled_by")
	})
}
