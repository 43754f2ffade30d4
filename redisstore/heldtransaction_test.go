package redisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// holding begins a transaction in the tenant's session that the gateway holds.
func (w tenant) holding(t *testing.T, s *Store, value money.MicroUSD, lifetime time.Duration) HeldTransaction {
	t.Helper()
	n := w.beginning(value)
	n.SpentOnExpiry, n.Irreversible, n.HeldByGateway, n.Lifetime = true, true, true, lifetime
	begun := must(s.Begin(t.Context(), w.exchange(t, s).AccessToken, n))(t)
	return HeldAs(w.key.Organization, begun)
}

func TestTheGatewayHoldsOnlyWhatItCanSettleForSure(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		token := w.exchange(t, s).AccessToken
		for what, change := range map[string]func(*NewTransaction){
			"without a session": func(n *NewTransaction) { n.Session = uuid.Nil },
			"released":          func(n *NewTransaction) { n.SpentOnExpiry = false },
			"reversible":        func(n *NewTransaction) { n.Irreversible = false },
		} {
			n := w.beginning(1)
			n.SpentOnExpiry, n.Irreversible, n.HeldByGateway = true, true, true
			change(&n)
			for _, n.DryRun = range []bool{false, true} {
				wantError(t, what, errOf(s.Begin(t.Context(), token, n)), ErrNotHeldSo)
			}
		}
		held, other := w.holding(t, s, 20, time.Hour), newTenant(t, s, NewSession{})
		for what, named := range map[string]HeldTransaction{
			"of another organization": {other.key.Organization, held.Agent, held.ID, nil},
			"of another agent":        {held.Organization, newAgents(t, s, w.key, 1)[0].ID, held.ID, nil},
			"of no agent":             {held.Organization, NewRootID(), held.ID, nil},
			"of no such id":           {held.Organization, held.Agent, NewID(held.Agent), nil},
		} {
			wantError(t, what, errOf(s.CommitHeld(t.Context(), named, nil)), ErrUnknownTransaction)
			wantError(t, what, errOf(s.RollbackHeld(t.Context(), named, "")), ErrUnknownTransaction)
			wantError(t, what, errOf(s.RenewHeld(t.Context(), named, time.Hour)), ErrUnknownTransaction)
		}
		for _, cost := range []money.MicroUSD{-1, MostValue + 1} {
			if got, err := s.CommitHeld(t.Context(), held, &cost); err == nil {
				t.Errorf("a cost of %d: %+v", cost, got)
			}
		}
		w.wantUsed(t, s, w.session.ID, 1, 0, Delegated{})
	})
}

// A session that is over closes after what the gateway holds in it, however often that is renewed.
func TestASessionClosesAfterAHoldThatIsRenewed(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		parent := w.session
		n := NewSession{Agent: w.agent.ID, Parent: parent.ID, MaxActions: 10, MaxValue: 50, Lifetime: time.Hour}
		w.session = must(s.CreateChildSession(t.Context(), w.byKey(), n))(t)
		held := w.holding(t, s, 20, time.Minute)
		w.end(t, s, w.session.ID)
		settle := func() { s.settleBelow(t.Context(), w.key.Organization, place{parent.ID, w.agent.ID}) }
		for _, at := range []time.Duration{30 * time.Second, 80 * time.Second, 130 * time.Second} {
			step(at)
			must(s.RenewHeld(t.Context(), held, time.Minute))(t)
			settle()
			w.wantUsed(t, s, parent.ID, 0, 0, Delegated{10, 50})
		}
		must(s.CommitHeld(t.Context(), held, new(money.MicroUSD(12))))(t)
		step(150 * time.Second)
		settle()
		w.wantUsed(t, s, parent.ID, 1, 12, Delegated{})
		if again := must(s.RollbackHeld(t.Context(), held, ""))(t); !again.Repeated || again.Status != Committed || again.Value != 12 {
			t.Errorf("after the session has closed it is %+v", again)
		}
	})
}
