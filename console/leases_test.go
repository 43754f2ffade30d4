package console

import (
	"fmt"
	"testing"
	"time"
)

func TestALeaseIsHeldUntilItIsSettled(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	session := w.newSession(ids["agent"], map[string]any{"max_lease_seconds": 60})
	lease := func(usd float64) string {
		made := w.asAdmin("POST", "/v1/sessions/"+session+"/leases", map[string]any{"max_value_usd": usd, "expires_in_seconds": 60})
		return made["id"].(string)
	}
	settled := lease(1)
	lease(0.5)
	w.asAdmin("POST", "/v1/leases/"+settled+"/settle", map[string]any{"action_count": 0, "value_used_usd": 0.25})
	w.overviewSays(b, "Held $2.50 1 pending transaction, $0.50 leased") // granted and settled before a viewer looked
	settled = lease(3)
	w.overviewSays(b, "Held $5.50 1 pending transaction, $3.50 leased")
	w.asAdmin("POST", "/v1/leases/"+settled+"/settle", map[string]any{"action_count": 0, "value_used_usd": 3})
	w.overviewSays(b, "Held $2.50 1 pending transaction, $0.50 leased")
}

func TestLeasesAreCountedAsFarAsTheyAreKnown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	granted := func(id string, lives time.Duration) eventRow {
		return eventRow{LeaseID: id, Data: fmt.Appendf(nil, `{"value_leased_usd":1.5,"expires_at":%q}`, now.Add(lives).Format(time.RFC3339Nano))}
	}
	var l leases
	l.grant(granted("settled", time.Minute), now)
	l.settle(eventRow{LeaseID: "settled"})
	l.grant(granted("open", time.Minute), now)
	l.grant(granted("over", -time.Second), now)
	if sum, isAll := l.sum(now); sum != 1_500_000 || !isAll {
		t.Errorf("of one open lease: %d, all %t", sum, isAll)
	}
	if sum, _ := l.sum(now.Add(time.Minute)); sum != 0 || len(l.open) != 0 {
		t.Errorf("after its end: %d", sum)
	}
	l.knowFrom(now.Add(time.Hour))
	_, isAll := l.sum(now)
	wantEqual(t, "what is not kept counts as known", isAll, false)
	for i := range mostLeases + 5 {
		l.grant(granted(fmt.Sprint(i), 2*time.Minute), now.Add(longestLease))
		l.grant(granted(fmt.Sprint(i), 2*longestLease), now.Add(longestLease))
	}
	if _, isAll := l.sum(now.Add(longestLease + time.Minute)); isAll || len(l.open) > mostLeases {
		t.Errorf("%d are kept, all %t", len(l.open), isAll)
	}
}

func TestTheOldestPendingTransactionsAreFoundAmongMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent, secret := w.newSecretAgent("busy")
	access := w.exchange(agent, secret)
	session := w.newSession(agent, map[string]any{"max_actions": 1000})
	begin := func() string {
		body := map[string]any{"session_id": session, "value_usd": 0.01, "action_type": "pay", "expires_in_seconds": 60}
		return w.asAgent(access, "/v1/transactions", body)["id"].(string)
	}
	first, at := begin(), time.Now()
	time.Sleep(5 * time.Millisecond) // the others are younger
	for range 201 {
		begin()
	}
	v := &visit{console: w.console, api: api{host: w.console.host, key: w.keys[viewer]}, now: at.Add(2*time.Minute + 2*time.Millisecond)}
	page := overviewPage{Pending: 202}
	must(0, page.readHeld(v, 1))(t)
	page.Look.readStuck(page.pending, v.now)
	if !page.HeldPartly || page.Held != 2_010_000 || len(page.pending) != 201 || page.NoHeld {
		t.Errorf("it holds %d, partly %t", page.Held, page.HeldPartly)
	}
	if page.Look.Stuck[0].ID != first || !page.Look.StuckPartly {
		t.Fatalf("of %d the oldest is %s, want %s", len(page.pending), page.Look.Stuck[0].ID, first)
	}
	few := overviewPage{Pending: 200}
	must(0, few.readHeld(v, 1))(t)
	wantEqual(t, "what is settled counts as pending", few.Look.StuckPartly, false)
}
