package server_test

import (
	"testing"
	"time"
)

func TestAPendingTransactionCanHoldMoreAndExpireLater(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, l := asAgent(w.exchange().access), w.trail()
		for _, test := range []struct{ change, want fields }{
			{fields{"value_usd": num("0.5")}, fields{"value_usd": num("0.5"), "value_held_usd": num("0.5")}},
			{fields{"expires_in_seconds": 3600}, fields{"expires_at": aboutIn(time.Hour)}},
			{fields{"value_usd": 3, "expires_in_seconds": 60}, fields{"value_usd": 3, "value_held_usd": 3, "expires_at": aboutIn(time.Minute)}},
		} {
			id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
			begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201)
			before, path := w.session(id), "/v1/transactions/"+begun.text("id")
			l.unread()
			changed := w.patch(path, test.change, access).is(200).exactly(begun.object().with(test.want))
			l.gains(changed, "agent", fields{"type": "transaction.hold_changed", "session_id": id, "transaction_id": begun.text("id"),
				"data": map[string]any{"value_held_usd": changed.object()["value_held_usd"], "expires_at": changed.text("expires_at")}})
			w.get(path, asKey(w.key)).is(200).exactly(changed.object())
			w.wantUsage(before, fields{"value_held_usd": changed.object()["value_held_usd"]})
		}
	})
}

func TestTheMetricsCountWhatBecomesOfHolds(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
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
		w.wantMetrics(
			`remit_holds_total{event="opened"} 4`, `remit_holds_total{event="committed"} 1`, `remit_holds_total{event="rolled_back"} 1`,
			`remit_holds_total{event="committed_late"} 1`, `remit_holds_expired_total 2`, `remit_hold_duration_seconds_count 2`,
		)
	})
}

// With on_expiry commit, what a hold that expires had reserved is spent, until its agent says once what it cost.
func TestAHoldThatExpiresIsSpentIfItsBeginSaysSo(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2, "expires_in_seconds": 1, "on_expiry": "commit"}).is(201).
			has(fields{"on_expiry": "commit"})
		path, list := "/v1/transactions/"+begun.text("id"), "/v1/transactions?settled_by=expiry"
		w.wantPages(list, asKey(w.key), []string{})
		eventually(t, "it is spent", func() bool { return w.get(path, access).text("status") == "committed" })
		spent := begun.object().with(fields{"status": "committed", "value_held_usd": 0, "settled_by": "expiry", "committed_at": begun.text("expires_at")})
		w.get(path, asKey(w.key)).is(200).exactly(spent)
		w.wantPages(list, asKey(w.key), []string{begun.text("id")})
		w.wantPages(list+"&status=committed", access, []string{begun.text("id")})
		w.post(path+"/commit", fields{"value_usd": num("0.5")}, access).is(200).exactly(
			spent.without("settled_by").with(fields{"value_usd": num("0.5"), "late": true, "committed_at": aboutNow}))
		w.wantPages(list, asKey(w.key), []string{})
	})
}

func TestWhatExpiryDoesIsOneOfTwoThings(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		id := w.newSession(nil)
		w.beginAs(access, fields{"on_expiry": "commit"}).invalid("on_expiry") // without a session nothing is held
		w.beginAs(access, fields{"session_id": id, "on_expiry": "release"}).is(201).exactly(newTransactionFields(w).with(fields{
			"session_id": id, "sequence_number": 1}))
		w.get("/v1/transactions?settled_by=hand", access).invalid("settled_by")
		w.get("/v1/sessions?settled_by=expiry", access).invalid("settled_by")
	})
}
