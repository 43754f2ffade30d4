package redisstore

import (
	"context"
	"testing"
	"time"

	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// keyedPart is a part that was set aside with an idempotency key, and the request.
type keyedPart struct {
	setAside
	n NewSession
}

// asideByKey sets a part of the tenant's session aside for a child, with the same idempotency key each time.
func (w tenant) asideByKey(t *testing.T, s *Store, n NewSession) keyedPart {
	t.Helper()
	n.Idempotency = &Idempotency{Key: "one", Fingerprint: [32]byte{1}}
	act := ownActor(w.key.Organization, w.agent.ID)
	r := must(s.setAside(t.Context(), setAsidePart, act, NewID(n.Agent), n))(t)
	return keyedPart{must(readSetAside(r, n.Idempotency))(t), n}
}

// A creation whose part was given back must not come to life by a repetition of its request: nothing would bound it.
func TestNoChildComesToLifeWithoutItsPart(t *testing.T) {
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 100, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		act := ownActor(w.key.Organization, w.agent.ID)
		n := NewSession{Agent: newAgents(t, s, w.key, 1)[0].ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 60, Lifetime: 10 * time.Minute}
		create := func(p keyedPart) (Session, error) { return s.createOfPart(t.Context(), act, p.n, p.setAside) }
		first, again := w.asideByKey(t, s, n), w.asideByKey(t, s, n)
		if again.child != first.child || !again.again {
			t.Fatalf("the repetition has %+v, the first %+v", again, first)
		}
		must(s.SuspendAgent(t.Context(), w.key, n.Agent, ""))(t)
		if _, err := create(first); !kernel.IsSuspended(err) {
			t.Errorf("for a suspended agent: %v", err)
		}
		must(s.ResumeAgent(t.Context(), w.key, n.Agent, ""))(t)
		wantError(t, "the first again", errOf(create(first)), kernel.ErrGivenUp)
		wantError(t, "the repetition", errOf(create(again)), &NotActiveError{Expired})
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{})
		wantError(t, "the session", errOf(s.Session(t.Context(), w.byKey(), first.child)), ErrUnknownSession)
		must(create(w.asideByKey(t, s, n)))(t) // the corrected request may use the key
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{10, 60})
	})
}

// A refusal of the first request must not take the part of the child that a repetition has created since.
func TestARefusedCreationLeavesWhatARepetitionCreated(t *testing.T) {
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 100, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		act := ownActor(w.key.Organization, w.agent.ID)
		n := NewSession{Agent: newAgents(t, s, w.key, 1)[0].ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 60, Lifetime: 10 * time.Minute}
		first, again := w.asideByKey(t, s, n), w.asideByKey(t, s, n)
		refusal := error(&AgentSuspendedError{})
		made := must(s.createOfPart(t.Context(), act, again.n, again.setAside))(t)
		wantError(t, "the first", s.withoutChild(t.Context(), act, first.n, first.setAside, refusal), refusal)
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{10, 60})
		must(s.Charge(t.Context(), w.byKey(), made.ID, Charge{Count: 1, Value: 60}))(t)
		wantEqual(t, "the child of the key", w.asideByKey(t, s, n).child, made.ID)
		w.end(t, s, made.ID)
		w.wantUsed(t, s, w.session.ID, 1, 60, Delegated{})
	})
}

// The end of a branch, or its shorter lifetime, reached only the first of its sessions. No caller repeats the request: who needs the parts
// goes on with it.
func TestACascadeThatWasBrokenOffGoesOnWhenItsPartsAreNeeded(t *testing.T) {
	t.Parallel()
	for name, breakOff := range map[string]func(ctx context.Context, s *Store, w tenant, top Session) error{
		"end": func(ctx context.Context, s *Store, w tenant, top Session) error {
			return s.endOne(ctx, w.key.Organization, place{top.ID, top.Agent})
		},
		"shorter lifetime": func(ctx context.Context, s *Store, w tenant, top Session) error {
			act, n := ownActor(w.key.Organization, top.Agent), NewLimits{Lifetime: new(time.Second)}
			at, err := s.readLimits(ctx, act.Flow, top.ID)
			if err == nil {
				_, err = s.changeLimits(ctx, act, at, n)
			}
			return err
		},
	} {
		withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
			w := newTenant(t, s, NewSession{MaxActions: 50, MaxValue: 100, Lifetime: 100 * 24 * time.Hour})
			branch := []Session{w.session}
			for range mostLevels - 1 {
				branch = append(branch, must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID,
					Parent: branch[len(branch)-1].ID, MaxActions: 20, MaxValue: 80, Lifetime: 24 * time.Hour}))(t))
			}
			must(s.Charge(t.Context(), w.byKey(), branch[mostLevels-1].ID, Charge{Count: 1, Value: 4}))(t)
			mustDo(t, breakOff(t.Context(), s, w, branch[1]))
			err := withinAMinute(step, onItsWay, func() error {
				return errOf(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 96}))
			})
			wantError(t, name+": a charge with what comes back within a minute", err, nil)
			for _, session := range branch[1:] {
				if is := must(s.Session(t.Context(), w.byKey(), session.ID))(t); is.Status == Active || is.delegated() != (Delegated{}) || is.ValueUsed != 4 {
					t.Errorf("%s: a session below is %s, with %+v delegated and %s used", name, is.Status, is.delegated(), is.ValueUsed)
				}
			}
		})
	}
}

// Each step of a settlement is in another cell, on a server of its own. None goes ahead of one that could be lost with its primary.
func TestASettlementWaitsForTheReplica(t *testing.T) {
	t.Parallel()
	p := redistest.StartPair(t, false)
	s := pairStore(t, p, Replicated)
	w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
	closed, open := w.child(t, s, w.session.ID, 10, 40), w.child(t, s, w.session.ID, 10, 40)
	for _, child := range []Session{closed, open} {
		must(s.Charge(t.Context(), w.byKey(), child.ID, Charge{Count: 1, Value: 5}))(t)
		mustDo(t, s.endOne(t.Context(), w.key.Organization, place{child.ID, child.Agent}))
	}
	must(s.closeUsage(t.Context(), w.key.Organization, place{closed.ID, closed.Agent}, refusesMissing))(t)
	loadScripts(t, s) // or each would wait twice
	settle := func(child Session) error {
		return errOf(s.settleOwn(t.Context(), w.key.Organization, place{child.ID, child.Agent}))
	}
	resume := p.SuspendReplica(t)
	wantError(t, "closing the usage", settle(open), ErrOutcomeUnknown)
	w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{20, 80})
	final := finalUsage{actions: 1, value: 5}
	above, child := place{w.session.ID, w.agent.ID}, place{closed.ID, closed.Agent}
	wantError(t, "taking the part", s.takeBack(t.Context(), w.key.Organization, above, child, &final), ErrOutcomeUnknown)
	if kept := peek(t, s).PTTL(t.Context(), s.keys.Session(closed.Agent, closed.ID)).Val(); kept < 365*24*time.Hour {
		t.Errorf("the record is released, for %v", kept)
	}
	resume()
	for _, child := range []Session{closed, open} {
		eventually(t, "it is settled", func() bool { return settle(child) == nil })
	}
	w.wantUsed(t, s, w.session.ID, 2, 10, Delegated{})
}
