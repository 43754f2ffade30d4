package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// A cascade that is overtaken by its opposite changes nothing that came later: not in a child that was on its way then, and not in
// one that was created since.
func TestADescendantFollowsTheLastSuspensionThoughAnEarlierOneComesLate(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		first := w.child(t, s, w.session.ID, 1, 10)
		act := ownActor(w.key.Organization, w.agent.ID)
		n := NewSession{Agent: newAgents(t, s, w.key, 1)[0].ID, Parent: w.session.ID, MaxActions: 1, Lifetime: 10 * time.Minute}
		onItsWay := NewID(n.Agent)
		part := must(readSetAside(must(s.setAside(t.Context(), setAsidePart, act, onItsWay, n))(t), nil))(t)

		must(s.client.Run(t.Context(), act.Flow, suspendSession, []string{s.keys.Agent(w.agent.ID), s.keys.Session(w.agent.ID, w.session.ID),
			s.keys.Events(w.agent.ID)}, act.Organization, act.Agent, "", s.core.Audit(t.Context(), act)))(t)
		version := must(peek(t, s).HGet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "sv").Result())(t)
		must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t) // while the suspension has not gone down yet

		wantError(t, "the creation of a child that was on its way", errOf(s.createOfPart(t.Context(), act, n, part)), kernel.ErrGivenUp)
		since := w.child(t, s, w.session.ID, 1, 10)
		mustDo(t, s.suspendDescendants(t.Context(), act, suspension{place{w.session.ID, w.agent.ID}, "1", version}, ""))
		for what, session := range map[string]uuid.UUID{"a child from before": first.ID, "a child since": since.ID} {
			wantEqual(t, what, must(s.Session(t.Context(), w.byKey(), session))(t).Suspended, time.Time{})
		}
	})
}

// When Redis has lost versions that descendants know already, they follow the next suspension all the same.
func TestDescendantsFollowASuspensionAfterRedisHasLostOne(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		child := w.child(t, s, w.session.ID, 10, 10)
		place := s.keys.Session(w.agent.ID, w.session.ID)
		for range 3 {
			must(s.SuspendSession(t.Context(), w.key, w.session.ID, ""))(t)
			must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t)
		}
		must(peek(t, s).HSet(t.Context(), place, "sv", "1").Result())(t)
		step(time.Second)
		must(s.SuspendSession(t.Context(), w.key, w.session.ID, ""))(t)
		w.wantSuspended(t, s, "the child", child.ID, true)
	})
}

// A child that comes while its parent's lifetime is shortened does not outlive it.
func TestAChildThatComesWhileItsParentIsShortenedIsShortenedToo(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		sooner := NewLimits{Lifetime: new(2 * time.Second)}
		act, at := must2(s.sessionToChange(t.Context(), w.byKey(), w.session.ID, sooner))(t)
		child := w.child(t, s, w.session.ID, 10, 10)
		r := must(s.changeLimits(t.Context(), act, at, sooner))(t)
		parent := must(s.afterChange(t.Context(), act, w.session.ID, sooner, r))(t)
		if is := must(s.Session(t.Context(), w.byKey(), child.ID))(t); is.Expires.After(parent.Expires) {
			t.Errorf("the child expires at %s, its parent at %s", is.Expires, parent.Expires)
		}
	})
}

// A session stays as long as its transactions, which may be pending for longer than it lasts, also when its last child is gone.
func TestASessionWhoseLastChildIsGoneStaysAsLongAsItsTransactions(t *testing.T) {
	t.Parallel()
	mini, start := miniredis.RunT(t), time.Now()
	mini.SetTime(start)
	s := openStore(t, Config{}, "redis://"+mini.Addr(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: time.Minute})
	token := w.exchange(t, s).AccessToken
	child := w.child(t, s, w.session.ID, 10, 10)
	long := s.config.Retention + time.Hour
	begun := must(s.Begin(t.Context(), token, NewTransaction{Session: w.session.ID, ActionType: "x", PreState: "{}", Value: 5, Lifetime: long}))(t)
	must(s.EndSession(t.Context(), w.byKey(), child.ID))(t)
	mini.SetTime(start.Add(long - time.Minute))
	mini.FastForward(long - time.Minute)
	committed := must(s.Commit(t.Context(), AccessToken{Organization: w.key.Organization, Agent: w.agent.ID, Family: w.agent.ID}, begun.ID, Commit{}))(t)
	wantEqual(t, "what is committed", committed.Value, 5)
	w.wantUsed(t, s, w.session.ID, 1, 5, Delegated{})
}

// What is noted of a session whose agent was deleted begins no audit trail: nothing would ever end it.
func TestAChildThatClosesAfterItsParentsAgentIsDeletedLeavesNoTrail(t *testing.T) {
	t.Parallel()
	mini, now := miniredis.RunT(t), time.Now()
	mini.SetTime(now)
	s := openStore(t, Config{}, "redis://"+mini.Addr(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: 60 * 24 * time.Hour})
	child := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: newAgents(t, s, w.key, 1)[0].ID, Parent: w.session.ID, MaxActions: 5,
		MaxValue: 50, Lifetime: 30 * 24 * time.Hour}))(t)
	must(s.Charge(t.Context(), w.byKey(), child.ID, Charge{Count: 1, Value: 7}))(t)
	must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
	mini.FastForward(20 * 24 * time.Hour)
	mini.SetTime(now.Add(20 * 24 * time.Hour))
	must(s.EndSession(t.Context(), w.byKey(), child.ID))(t)
	wantEqual(t, "what the parent has used", mini.HGet(s.keys.Session(w.agent.ID, w.session.ID), "v"), "7")
	wantEqual(t, "a deleted agent has an audit trail again", mini.Exists(s.keys.Events(w.agent.ID)), false)
}

// A list of sessions settles what a crash has left of an abandoned tree, however it is asked for.
func TestAListSettlesWhatACrashHasLeft(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{"", Active} {
		withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
			eventually(t, "one list settles it", func() bool { // one is given up when the machine is too busy: another tree, then
				step(0)
				w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: time.Minute})
				n := NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 40, Lifetime: time.Minute}
				must(s.setAside(t.Context(), setAsidePart, ownActor(w.key.Organization, w.agent.ID), NewID(w.agent.ID), n))(t) // and no session is created
				child := w.child(t, s, w.session.ID, 10, 10)
				must(s.Charge(t.Context(), w.byKey(), child.ID, Charge{Count: 1, Value: 7}))(t)
				if status != Active { // it is listed as closed, and not settled
					s.closeSessions(t.Context(), w.key.Organization, []uuid.UUID{w.session.ID, child.ID}, time.Time{})
				}
				step(time.Hour)
				must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10, Status: status}))(t)
				for _, p := range []place{{w.session.ID, w.agent.ID}, {child.ID, child.Agent}} {
					if must(peek(t, s).PTTL(t.Context(), s.keys.Session(p.agent, p.session)).Result())(t) > refusedFor+s.config.Retention {
						return false
					}
				}
				w.wantUsed(t, s, w.session.ID, 1, 7, Delegated{})
				return true
			})
		})
	}
}

// tellSuspension is one step of the cascade: it tells a session the suspension of its parent.
func (w tenant) tellSuspension(t *testing.T, s *Store, p place, suspended, version string) {
	t.Helper()
	must(s.client.Run(t.Context(), flow{Owner: w.key.Organization}, suspendDescendant,
		[]string{s.keys.Session(p.agent, p.session), s.keys.Events(p.agent), s.keys.Agent(p.agent)}, suspended, version, "", refusedFor.Milliseconds(),
		s.core.Audit(t.Context(), ownActor(w.key.Organization, p.agent))))(t)
}

// wantSuspended checks whether a charge of the session is refused because it is suspended.
func (w tenant) wantSuspended(t *testing.T, s *Store, what string, session uuid.UUID, want bool) {
	t.Helper()
	_, err := s.Charge(t.Context(), w.byKey(), session, Charge{Count: 1})
	if kernel.IsSuspended(err) != want || err != nil && !want {
		t.Errorf("%s, a charge: %v", what, err)
	}
}

// A suspension that another request overtakes on its way down still reaches every descendant before it is acknowledged: the other
// may be slow, or break off.
func TestAnAcknowledgedSuspensionHoldsForAllThoughAnotherOvertookIt(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		child := w.child(t, s, w.session.ID, 5, 50)
		grandchild := w.child(t, s, child.ID, 2, 10)
		hour := time.Now().Add(time.Hour).UnixMilli()
		later := func(n int64) string { return strconv.FormatInt(hour+n, 10) }
		w.tellSuspension(t, s, place{child.ID, child.Agent}, "1", later(1)) // the other has got so far
		must(s.SuspendSession(t.Context(), w.key, w.session.ID, ""))(t)
		w.wantSuspended(t, s, "suspended", grandchild.ID, true)
		w.tellSuspension(t, s, place{child.ID, child.Agent}, "", later(2))
		must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t)
		w.wantSuspended(t, s, "resumed", grandchild.ID, false)
	})
}

// The end of a child broke off before it reached the grandchild, which so lives on.
func TestASuspensionReachesWhatABrokenOffEndHasLeftAlive(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		child := w.child(t, s, w.session.ID, 5, 50)
		grandchild := w.child(t, s, child.ID, 2, 10)
		mustDo(t, s.endOne(t.Context(), w.key.Organization, place{child.ID, child.Agent}))
		before := len(w.eventsOf(t, s, child.Agent))
		for range 2 {
			must(s.SuspendSession(t.Context(), w.key, w.session.ID, ""))(t)
			w.wantSuspended(t, s, "suspended", grandchild.ID, true)
			must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t)
			w.wantSuspended(t, s, "resumed", grandchild.ID, false)
		}
		wantEqual(t, "the events of the ended session", len(w.eventsOf(t, s, child.Agent)), before)
	})
}

func (w tenant) eventsOf(t *testing.T, s *Store, agent uuid.UUID) []Event {
	t.Helper()
	events, _ := must2(s.Events(t.Context(), w.byKey(), agent, "", 1000))(t)
	return events
}
