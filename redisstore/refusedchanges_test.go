package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"remit/money"
)

// What a refused change would have raised stays with the parent: it would come back only when the child closes.
func TestARefusedChangeOfAChildSetsNothingAside(t *testing.T) {
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 100, MaxValue: 1000}, func(t *testing.T, s *Store, w tenant) {
		child := w.child(t, s, w.session.ID, 10, 100)
		must(s.Charge(t.Context(), w.byKey(), child.ID, Charge{Count: 5, Value: 50}))(t)
		var below *BelowUsageError
		var parent *ParentError
		for name, refused := range map[string]struct {
			change NewLimits
			by     any
		}{
			"with fewer actions than are used":  {NewLimits{MaxActions: new(int64(4)), MaxValue: new(money.MicroUSD(200))}, &below},
			"with less value than is used":      {NewLimits{MaxValue: new(money.MicroUSD(49)), AddActions: new(int64(7))}, &below},
			"with a lifetime beyond the parent": {NewLimits{AddValue: new(money.MicroUSD(70)), Lifetime: new(100 * time.Hour)}, &parent},
		} {
			if _, err := s.ChangeLimits(t.Context(), w.key, child.ID, refused.change); !errors.As(err, refused.by) {
				t.Errorf("%s: %v", name, err)
			}
			w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{10, 100})
		}
		must(s.ChangeLimits(t.Context(), w.key, child.ID, NewLimits{MaxActions: new(int64(5)), MaxValue: new(money.MicroUSD(200))}))(t)
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{10, 200})
	})
}

func TestARefusedChangeOfARootReservesNothing(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	now := time.Now()
	mini.SetTime(now)
	s := openStore(t, Config{}, "redis://"+mini.Addr(), nil)
	w, stranger := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100}), newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
	must(s.SetBudget(t.Context(), stranger.key, 1000, BudgetForever))(t)
	kept := must(s.CreateSession(t.Context(), stranger.key, NewSession{Agent: stranger.agent.ID, MaxActions: 10, MaxValue: 100, Lifetime: time.Hour}))(t)
	must(s.SetBudget(t.Context(), w.key, 1000, BudgetForever))(t)
	more := NewLimits{MaxValue: new(money.MicroUSD(300))}
	refuses := func(what string, session Session, change NewLimits, by any) {
		t.Helper()
		if _, err := s.ChangeLimits(t.Context(), w.key, session.ID, change); !errors.As(err, by) {
			t.Errorf("%s: %v", what, err)
		}
		if is := must(s.Budget(t.Context(), w.key))(t); is.Reserved != 0 || is.Used != 0 {
			t.Errorf("%s: the budget is %+v", what, is)
		}
	}
	for _, foreign := range []Session{stranger.session, kept} {
		wantError(t, "another organization's session", errOf(s.ChangeLimits(t.Context(), w.key, foreign.ID, more)), ErrUnknownSession)
		wantEqual(t, "what another organization's session has reserved", must(s.Budget(t.Context(), w.key))(t).Reserved, 0)
	}
	must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 5}))(t)
	var below *BelowUsageError
	var inactive *NotActiveError
	refuses("fewer actions than are used", w.session, NewLimits{MaxValue: more.MaxValue, MaxActions: new(int64(4))}, &below)
	mini.SetTime(now.Add(48 * time.Hour))
	refuses("a session that has expired", w.session, more, &inactive)
}

// A session of a tree has no TTL that its holds could take over: a short one must not shorten the time of a long one.
func TestTheHoldsOfATreeStayAsLongAsTheLastOfThem(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	s := openStore(t, Config{}, "redis://"+mini.Addr(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000})
	w.child(t, s, w.session.ID, 1, 1)
	token := w.exchange(t, s).AccessToken
	long := w.beginning(10)
	long.Lifetime = 30 * 24 * time.Hour
	must(s.Begin(t.Context(), token, long))(t)
	w.begin(t, s, token, 10)
	if left := mini.TTL(s.keys.Holds(w.agent.ID, w.session.ID)); left < long.Lifetime {
		t.Errorf("the holds are stored for %s, and one lasts %s", left, long.Lifetime)
	}
}

// The session has changed, though not all below it has: a client must not take it for unchanged, and add again.
func TestAChangeThatBreaksOffInTheTreeIsInDoubt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *Store, w tenant) error{
		"end": func(s *Store, w tenant) error {
			return errOf(s.EndSession(t.Context(), w.byKey(), w.session.ID))
		},
		"suspension": func(s *Store, w tenant) error {
			return errOf(s.SuspendSession(t.Context(), w.key, w.session.ID, ""))
		},
		"shorter lifetime": func(s *Store, w tenant) error {
			return errOf(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{AddValue: new(money.MicroUSD(5)), Lifetime: new(time.Minute)}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mini := miniredis.RunT(t)
			s := openStore(t, Config{}, "redis://"+mini.Addr(), nil)
			w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000})
			child := w.child(t, s, w.session.ID, 10, 100)
			w.child(t, s, child.ID, 1, 1)
			parts := s.keys.Parts(child.ID, child.ID)
			wantEqual(t, "whether the child has a part", mini.Del(parts), true)
			must(mini.Lpush(parts, "no hash"))(t)
			if err := change(s, w); !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrUnavailable) {
				t.Errorf("%v, want %v", err, ErrOutcomeUnknown)
			}
			mini.Del(parts)
			if name == "shorter lifetime" {
				return // without a key it would add again
			}
			wantError(t, "again", change(s, w), nil)
		})
	}
}
