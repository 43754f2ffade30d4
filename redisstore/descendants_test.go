package redisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// tellSuspension is one step of the cascade: it tells a session the suspension of its parent.
func (w tenant) tellSuspension(t *testing.T, s *Store, p place, suspended, version string) {
	t.Helper()
	must(s.client.Run(t.Context(), flow{Owner: w.key.Organization}, suspendDescendant,
		[]string{s.keys.session(p.agent, p.session), s.keys.events(p.agent)}, suspended, version, "", refusedFor.Milliseconds(),
		s.audit(t.Context(), ownActor(w.key.Organization, p.agent))))(t)
}

// wantSuspended checks whether a charge of the session is refused because it is suspended.
func (w tenant) wantSuspended(t *testing.T, s *Store, what string, session uuid.UUID, want bool) {
	t.Helper()
	_, err := s.Charge(t.Context(), w.byKey(), session, Charge{Count: 1})
	if isSuspended(err) != want || err != nil && !want {
		t.Errorf("%s, a charge: %v", what, err)
	}
}

// A suspension that another request overtakes on its way down still reaches every descendant before it is acknowledged: the other
// may be slow, or break off.
func TestAnAcknowledgedSuspensionHoldsForAllThoughAnotherOvertookIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		child := w.child(t, s, w.session.ID, 50, 50)
		grandchild := w.child(t, s, child.ID, 10, 10)
		w.tellSuspension(t, s, place{child.ID, child.Agent}, "1", "2") // the other has got so far
		must(s.SuspendSession(t.Context(), w.key, w.session.ID, ""))(t)
		w.wantSuspended(t, s, "suspended", grandchild.ID, true)
		w.tellSuspension(t, s, place{child.ID, child.Agent}, "", "9")
		must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t)
		w.wantSuspended(t, s, "resumed", grandchild.ID, false)
	})
}

// The end of a child broke off before it reached the grandchild, which so lives on.
func TestASuspensionReachesWhatABrokenOffEndHasLeftAlive(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		child := w.child(t, s, w.session.ID, 50, 50)
		grandchild := w.child(t, s, child.ID, 10, 10)
		if err := s.endOne(t.Context(), w.key.Organization, place{child.ID, child.Agent}); err != nil {
			t.Fatal(err)
		}
		before := len(w.eventsOf(t, s, child.Agent))
		for range 2 {
			must(s.SuspendSession(t.Context(), w.key, w.session.ID, ""))(t)
			w.wantSuspended(t, s, "suspended", grandchild.ID, true)
			must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t)
			w.wantSuspended(t, s, "resumed", grandchild.ID, false)
		}
		if got := len(w.eventsOf(t, s, child.Agent)); got != before {
			t.Errorf("the ended session has %d events more", got-before)
		}
	})
}

func (w tenant) eventsOf(t *testing.T, s *Store, agent uuid.UUID) []Event {
	t.Helper()
	events, _, err := s.Events(t.Context(), w.byKey(), agent, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// A child is created between a resumption and the suspension before it, which comes late.
func TestALateSuspensionDoesNotSuspendWhatIsCreatedAfterTheResumption(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		act, p := ownActor(w.key.Organization, w.agent.ID), place{NewID(w.agent.ID), w.agent.ID}
		n := NewSession{Agent: p.agent, Parent: w.session.ID, MaxActions: 10, MaxValue: 40, Lifetime: time.Minute}
		r := must(s.setAside(t.Context(), setAsidePart, act, p.session, n))(t)
		w.tellSuspension(t, s, p, "", "2")
		must(s.createOfPart(t.Context(), act, n, must(readSetAside(r, nil))(t)))(t)
		w.tellSuspension(t, s, p, "1", "1")
		w.wantSuspended(t, s, "created after the resumption", p.session, false)
		w.tellSuspension(t, s, p, "1", "3")
		w.wantSuspended(t, s, "suspended after that", p.session, true)
	})
}

// A settlement breaks off between two steps, and a creation after its part is set aside. The end of the session above gives both back.
func TestTheEndOfASessionSettlesWhatIsLeftBelowIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		o, child := w.key.Organization, w.child(t, s, w.session.ID, 50, 50)
		grandchild, above := w.child(t, s, child.ID, 10, 10), place{child.ID, child.Agent}
		below := place{grandchild.ID, grandchild.Agent}
		must(s.Charge(t.Context(), w.byKey(), below.session, Charge{Count: 1, Value: 3}))(t)
		if err := s.endOne(t.Context(), o, below); err != nil {
			t.Fatal(err)
		}
		if err := s.takeUsage(t.Context(), o, above, below, must(s.closeBooks(t.Context(), o, below))(t)); err != nil {
			t.Fatal(err)
		}
		lost := NewSession{Agent: w.agent.ID, Parent: child.ID, MaxActions: 10, MaxValue: 40, Lifetime: time.Minute, WithinParent: true}
		must(s.setAside(t.Context(), setAsidePart, ownActor(o, child.Agent), NewID(w.agent.ID), lost))(t)
		w.wantBooks(t, s, child.ID, 1, 3, Delegated{10, 40})
		eventually(t, "all is given back", func() bool { // one end waits at most a second for it
			must(s.EndSession(t.Context(), w.byKey(), child.ID))(t)
			return must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).delegated() == Delegated{}
		})
		w.wantBooks(t, s, w.session.ID, 1, 3, Delegated{})
	})
}
