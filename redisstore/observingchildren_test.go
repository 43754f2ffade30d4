package redisstore

import (
	"errors"
	"testing"
	"time"

	"remit/redisstore/internal/kernel"
)

// Where the parent enforces again, no child goes on observing, however the requests overlap.
func TestNoRequestToObserveOvertakesAParentThatEnforcesAgain(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Observes: true})
		observe := NewLimits{Observes: new(true)}
		child := w.child(t, s, w.session.ID, 20, 60)
		must(s.ChangeLimits(t.Context(), w.key, child.ID, observe))(t)
		below := w.child(t, s, child.ID, 5, 50)
		act := ownActor(w.key.Organization, below.Agent)
		at := must(s.readLimits(t.Context(), act.Flow, below.ID))(t)
		granted := must(s.grantAbove(t.Context(), act, at, observe))(t) // a request to observe stops here
		lost := NewID(w.agent.ID)                                       // and so does a creation
		n := NewSession{Agent: w.agent.ID, Parent: child.ID, MaxActions: 1, Lifetime: time.Second, Observes: true}
		part := must(readSetAside(must(s.setAside(t.Context(), setAsidePart, ownActor(w.key.Organization, child.Agent), lost, n))(t), nil))(t)

		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Observes: new(false)}))(t)
		wantError(t, "what was granted before", errOf(s.changeWithin(t.Context(), act, below.ID, observe, granted)), kernel.ErrStale)
		if _, err := s.createOfPart(t.Context(), ownActor(w.key.Organization, child.Agent), n, part); !errors.Is(err, kernel.ErrGivenUp) {
			t.Errorf("a creation that began before: %v", err)
		}
		if _, err := s.Session(t.Context(), w.byKey(), lost); !errors.Is(err, ErrUnknownSession) {
			t.Errorf("the session of a creation that began before: %v", err)
		}
	})
}
