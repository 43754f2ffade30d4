package redisstore

import (
	"strings"
	"sync"
	"testing"
	"time"

	"remit/money"
	"remit/redisstore/internal/kernel"
)

// observing describes a session of 3 actions and 100 micro-USD that observes.
var observing = NewSession{MaxActions: 3, MaxValue: 100, MaxLease: time.Minute, Observes: true}

// wantObserved checks whether the tenant's session observes, and how much it counted that its limits would have refused.
func (w tenant) wantObserved(t *testing.T, s *Store, observes bool, refusals int64) Session {
	t.Helper()
	got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
	if got.Observes != observes || got.ObservedRefusals == nil || *got.ObservedRefusals != refusals {
		t.Errorf("it observes: %t, counted: %v, want %t, %d", got.Observes, got.ObservedRefusals, observes, refusals)
	}
	if got.MaxCommitted != nil && w.session.MaxCommitted == nil {
		t.Errorf("it has max_committed %d", *got.MaxCommitted)
	}
	return got
}

func (w tenant) setEnforcement(t *testing.T, s *Store, observes bool) Session {
	t.Helper()
	return must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Observes: &observes}))(t)
}

func TestAnObservingSessionChargesWhatItsLimitsWouldRefuse(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		w.wantObserved(t, s, true, 0)
		for i, test := range []struct {
			charge   Charge
			would    string
			refusals int64
		}{
			{Charge{Count: 1, Value: 100}, "", 0},
			{Charge{Count: 1, Value: 1}, "max_value_usd", 1},
			{Charge{Count: 1}, "max_value_usd", 2},
			{Charge{Count: 1, Value: 5}, "max_actions", 3},
			{Charge{Count: 7}, "max_actions", 4},
		} {
			dry := test.charge
			dry.DryRun = true
			var expected Usage
			wantUnchanged(t, s, "a dry run", func() { expected = must(s.Charge(t.Context(), w.byKey(), w.session.ID, dry))(t) })
			usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, test.charge))(t)
			if usage.WouldRefuse != test.would || usage != expected {
				t.Errorf("charge %d: %+v, the dry run %+v, want %q", i, usage, expected, test.would)
			}
			usage.WouldRefuse = ""
			if got := w.wantObserved(t, s, true, test.refusals); got.Usage != usage || got.RemainingValue() != 0 || got.RemainingActions() != max(3-got.ActionCount, 0) {
				t.Errorf("charge %d: the session has %+v, %+v was returned", i, got.Usage, usage)
			}
		}
		w.wantState(t, s, 11, 106, 0, 0)
		w.wantNotes(t, s, "limit_warning max_value_usd", "limit_reached max_value_usd", "would_refuse max_value_usd",
			"limit_warning max_actions", "limit_reached max_actions", "would_refuse max_actions")
	})
}

func TestAnObservingSessionStillEnforcesWhatIsNoLimit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 1, Scopes: []string{"read"}, MaxLease: time.Second, Observes: true})
		grant := w.exchange(t, s)
		over := Charge{Count: 5, Value: 5}
		withScope := over
		withScope.Scope = "write"
		_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, withScope)
		wantError(t, "a scope that is not held", err, &ScopeError{Scope: "write"})
		_, err = s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 1, Lifetime: time.Minute})
		wantError(t, "a lease that is too long", err, &LimitError{"max_lease_seconds", w.session.Usage})
		must(s.SuspendSession(t.Context(), w.key, w.session.ID, ""))(t)
		if _, err = s.Charge(t.Context(), w.byKey(), w.session.ID, over); !kernel.IsSuspended(err) {
			t.Errorf("a charge of a suspended session: %v", err)
		}
		must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t)
		must(s.Charge(t.Context(), byToken(grant), w.session.ID, over))(t)
		w.wantObserved(t, s, true, 1)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		_, err = s.Charge(t.Context(), w.byKey(), w.session.ID, over)
		wantError(t, "an ended session", err, &NotActiveError{Completed})
		w.wantObserved(t, s, true, 1)
	})
}

func TestABatchIsObservedItemByItem(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		own := w.session.ID
		for _, idem := range []*Idempotency{nil, {Key: "batch"}, {Key: "batch"}} {
			charges := []BatchCharge{{own, Charge{Count: 1, Value: 90}}, {own, Charge{Count: 1, Value: 20}}, {own, Charge{Count: 5}}}
			outcomes := must(s.ChargeBatch(t.Context(), w.byKey(), charges, idem))(t)
			for i, first := range []string{"", "max_value_usd", "max_actions"} {
				would := first
				if idem != nil {
					would = "max_actions"
				}
				if outcomes[i].Err != nil || outcomes[i].Usage.WouldRefuse != would {
					t.Errorf("item %d: %+v, want %q", i, outcomes[i], would)
				}
			}
		}
		w.wantObserved(t, s, true, 2+3)
		w.wantState(t, s, 14, 220, 0, 0)
	})
}

func TestAnObservingSessionHoldsAndCommitsWhatItsLimitsWouldRefuse(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		token := w.exchange(t, s).AccessToken
		begin := func(value money.MicroUSD, would string) Transaction {
			t.Helper()
			begun := w.begin(t, s, token, value)
			if begun.WouldRefuse != would {
				t.Errorf("a begin of %d says %q, want %q", value, begun.WouldRefuse, would)
			}
			return begun
		}
		first := begin(80, "")
		second := begin(40, "max_value_usd")
		raised := must(s.ChangeHold(t.Context(), token, first.ID, NewHold{Value: new(money.MicroUSD(90))}))(t)
		lowered := must(s.ChangeHold(t.Context(), token, first.ID, NewHold{Value: new(money.MicroUSD(85)), Lifetime: new(time.Hour)}))(t)
		if raised.WouldRefuse != "max_value_usd" || raised.Held != 90 || lowered.WouldRefuse != "" || lowered.Held != 85 {
			t.Errorf("raised to %+v, lowered to %+v", raised, lowered)
		}
		w.wantState(t, s, 2, 0, 125, 0)
		whole := must(s.Commit(t.Context(), token, first.ID, Commit{Value: new(money.MicroUSD(300))}))(t)
		if whole.Value != 300 || whole.Overage != 0 {
			t.Errorf("committed as %+v", whole)
		}
		must(s.Rollback(t.Context(), Caller{Token: &token}, second.ID, Rollback{}))(t)
		w.wantState(t, s, 2, 300, 0, 0)
		begin(0, "max_value_usd")
		begin(0, "max_actions")
		w.wantObserved(t, s, true, 4)
	})
}

func TestAnObservingSessionLeasesWhatItsLimitsWouldRefuse(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		for _, test := range []struct {
			wanted NewLease
			would  string
		}{
			{NewLease{MaxActions: 2, MaxValue: 60}, ""},
			{NewLease{MaxActions: 2, MaxValue: 60, Partial: true}, ""}, // some of it fits
			{NewLease{MaxActions: 1, MaxValue: 1, Partial: true}, "max_actions"},
			{NewLease{MaxValue: 10}, "max_value_usd"},
		} {
			test.wanted.Lifetime = time.Minute
			got := must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, test.wanted))(t)
			if got.WouldRefuse != test.would || got.MaxActions != test.wanted.MaxActions || got.MaxValue != test.wanted.MaxValue {
				t.Errorf("%+v gives %+v, want %q", test.wanted, got, test.would)
			}
		}
		w.wantState(t, s, 5, 0, 131, 0)
		w.wantObserved(t, s, true, 2)
		settled := w.lease(t, s, 1, 1)
		renewed := must(s.SettleLease(t.Context(), w.byKey(), settled.ID, NewSettlement{ActionCount: 8, ValueUsed: 500,
			Renew: &NewLease{MaxActions: 1, MaxValue: 1, Lifetime: time.Minute}}))(t).Settlement
		if renewed.Overage != 0 || renewed.OverageActions != 0 || renewed.Renewed == nil {
			t.Errorf("settled as %+v", renewed)
		}
		w.wantState(t, s, 5+8+1, 500, 132, 0)
		w.wantObserved(t, s, true, 4)
	})
}

func TestASessionThatEnforcesAgainRefusesWhatExceedsItsLimits(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		token := w.exchange(t, s).AccessToken
		held := w.begin(t, s, token, 30)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 9, Value: 200}))(t)
		changed := w.setEnforcement(t, s, false)
		usage := Usage{MaxActions: 3, ActionCount: 10, MaxValue: 100, ValueUsed: 200, ValueHeld: 30, Expires: w.session.Expires}
		if got := w.wantObserved(t, s, false, 1); got.Usage != usage || changed.Usage != usage || changed.Observes {
			t.Errorf("%+v, read as %+v", changed, got)
		}
		refused := func(limit string, value money.MicroUSD) {
			t.Helper()
			wantUnchanged(t, s, limit, func() {
				_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: value})
				wantError(t, "a charge", err, &LimitError{limit, usage})
				_, err = s.Begin(t.Context(), token, func() NewTransaction { n := w.beginning(value); n.DryRun = true; return n }())
				wantError(t, "a begin", err, &LimitError{limit, usage})
				_, err = s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 1, MaxValue: value, Lifetime: time.Minute, Partial: true})
				wantError(t, "a lease", err, &LimitError{limit, usage})
			})
		}
		refused("max_actions", 1)
		// A raise is taken although it does not reach what is used; a lower limit is not.
		for _, test := range []struct {
			to   NewLimits
			want error
		}{
			{NewLimits{MaxActions: new(int64(2))}, &BelowUsageError{"max_actions", usage}},
			{NewLimits{MaxValue: new(money.MicroUSD(99))}, &BelowUsageError{"max_value_usd", usage}},
			{NewLimits{MaxActions: new(int64(12)), AddValue: new(money.MicroUSD(20))}, nil},
		} {
			_, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, test.to)
			wantError(t, "a change of limits", err, test.want)
		}
		usage.MaxActions, usage.MaxValue = 12, 120
		refused("max_value_usd", 0)
		// What was held is charged, and no more; then a hold may only shrink.
		if committed := must(s.Commit(t.Context(), token, held.ID, Commit{Value: new(money.MicroUSD(50))}))(t); committed.Value != 30 || committed.Overage != 20 {
			t.Errorf("committed as %+v", committed)
		}
		w.wantState(t, s, 10, 230, 0, 20)
		w.wantObserved(t, s, false, 1)
		w.setEnforcement(t, s, true)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 1}))(t)
		w.wantObserved(t, s, true, 2)
	})
}

func TestAHoldBeyondTheLimitMayOnlyShrinkOnceTheSessionEnforces(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		token := w.exchange(t, s).AccessToken
		begun := w.begin(t, s, token, 500)
		late := w.begin(t, s, token, 50)
		w.setEnforcement(t, s, false)
		_, err := s.ChangeHold(t.Context(), token, begun.ID, NewHold{Value: new(money.MicroUSD(501))})
		wantError(t, "more", err, &LimitError{"max_value_usd", Usage{MaxActions: 3, ActionCount: 2, MaxValue: 100, ValueHeld: 550, Expires: w.session.Expires}})
		must(s.ChangeHold(t.Context(), token, begun.ID, NewHold{Lifetime: new(time.Hour)}))(t)
		if less := must(s.ChangeHold(t.Context(), token, begun.ID, NewHold{Value: new(money.MicroUSD(400))}))(t); less.Held != 400 {
			t.Errorf("%+v", less)
		}
		w.letPass(t, s, late)
		if committed := must(s.Commit(t.Context(), token, late.ID, Commit{}))(t); committed.Value != 0 || committed.Overage != 50 || !committed.Late {
			t.Errorf("a late commit beyond the limit: %+v", committed)
		}
		w.wantState(t, s, 2, 0, 400, 50)
		must(s.Rollback(t.Context(), Caller{Token: &token}, begun.ID, Rollback{}))(t)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 100}))(t)
	})
}

// A team tries a limit on a session that runs already.
func TestAnObservingSessionTakesLimitsBelowItsUsage(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 5, Value: 50}))(t)
		got := must(s.ChangeLimits(t.Context(), w.key, w.session.ID,
			NewLimits{Observes: new(true), MaxActions: new(int64(2)), MaxValue: new(money.MicroUSD(20))}))(t)
		if !got.Observes || got.MaxActions != 2 || got.MaxValue != 20 || got.RemainingActions() != 0 || got.RemainingValue() != 0 {
			t.Errorf("%+v", got)
		}
		charge := func(would string) {
			t.Helper()
			if usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1}))(t); usage.WouldRefuse != would {
				t.Errorf("%+v, want %q", usage, would)
			}
		}
		charge("max_actions")
		charge("max_actions")
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxValue: new(money.MicroUSD(70)), MaxActions: new(int64(8))}))(t)
		charge("")
		charge("max_actions")
		w.wantObserved(t, s, true, 3)
		w.wantEvents(t, s, "session.would_refuse", 3) // each limit once, and again after it was changed
	})
}

func TestAnObservingSessionCountsNoMoreThanTheHighestLimits(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		token := w.exchange(t, s).AccessToken
		charge := func(count int64, value money.MicroUSD) error {
			_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: count, Value: value})
			return err
		}
		wantError(t, "all that can be counted", charge(1, MostValue), nil)
		usage := Usage{MaxActions: 3, ActionCount: 1, MaxValue: 100, ValueUsed: MostValue, Expires: w.session.Expires}
		wantError(t, "more value", charge(1, 1), &LimitError{"max_value_usd", usage})
		_, err := s.Begin(t.Context(), token, w.beginning(1))
		wantError(t, "a hold", err, &LimitError{"max_value_usd", usage})
		wantError(t, "all actions that can be counted", charge(MostActions-1, 0), nil)
		usage.ActionCount = MostActions
		wantError(t, "more actions", charge(1, 0), &LimitError{"max_actions", usage})
		outcomes := must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{{w.session.ID, Charge{Count: 1}}}, nil))(t)
		wantError(t, "in a batch", outcomes[0].Err, &LimitError{"max_actions", usage})
		w.wantObserved(t, s, true, 2)
	})
}

func TestAnObservingSessionCountsItsUsageWithMaxCommitted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, MaxCommitted: new(money.MicroUSD(20)), Observes: true})
		token := w.exchange(t, s).AccessToken
		begun := w.begin(t, s, token, 50)
		if begun.WouldRefuse != "max_committed_usd" {
			t.Errorf("%+v", begun)
		}
		must(s.Commit(t.Context(), token, begun.ID, Commit{}))(t)
		w.wantCommitted(t, s, 50, 50, 0)
		must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		w.wantCommitted(t, s, 0, 50, 0)
		w.setEnforcement(t, s, false)
		_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 1})
		wantError(t, "beyond max_committed", err, &LimitError{"max_committed_usd",
			Usage{MaxActions: 100, ActionCount: 1, MaxValue: 100, Withheld: 100, Expires: w.session.Expires}})
		w.wantObserved(t, s, false, 1)
	})
}

// A replay says what the first response said, and counts nothing again.
func TestWhatIsObservedIsCountedOnceForItsIdempotencyKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		token := w.exchange(t, s).AccessToken
		for i := range 3 {
			charged := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 4, Value: 1, Idempotency: &Idempotency{Key: "c"}}))(t)
			n := w.beginning(200)
			n.Idempotency = &Idempotency{Key: "b"}
			begun := must(s.Begin(t.Context(), token, n))(t)
			changed := must(s.ChangeHold(t.Context(), token, begun.ID, NewHold{Value: new(money.MicroUSD(300)), Idempotency: &Idempotency{Key: "h"}}))(t)
			leased := must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 1, Lifetime: time.Minute, Idempotency: &Idempotency{Key: "l"}}))(t)
			for what, would := range map[string]string{
				"charge max_actions": charged.WouldRefuse, "begin max_actions": begun.WouldRefuse,
				"hold max_value_usd": changed.WouldRefuse, "lease max_actions": leased.WouldRefuse,
			} {
				if _, want, _ := strings.Cut(what, " "); would != want {
					t.Errorf("round %d, %s: %q", i, what, would)
				}
			}
			if changed.Held != 300 {
				t.Errorf("round %d: %+v", i, changed)
			}
		}
		w.wantObserved(t, s, true, 4)
	})
}

func TestChargesThatShareACommandAreObservedEach(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
			crowd(t, s)
			w := newTenant(t, s, observing)
			enforcing := w
			enforcing.session = w.newSession(t, s, time.Hour)
			var would, charged sync.Map
			var group sync.WaitGroup
			for i := range 40 {
				group.Go(func() {
					usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1}))(t)
					if usage.WouldRefuse != "" {
						would.Store(i, usage.WouldRefuse)
					}
					charged.Store(usage.ActionCount, true)
					must(s.Charge(t.Context(), w.byKey(), enforcing.session.ID, Charge{Count: 1}))(t)
				})
			}
			group.Wait()
			if size(&would) != 37 || size(&charged) != 40 {
				t.Errorf("%d would have been refused, %d different counts", size(&would), size(&charged))
			}
			w.wantObserved(t, s, true, 37)
			w.wantEvents(t, s, "session.would_refuse", 1)
		})
	})
}

// What removes the field that makes a charge look for restrictions must keep it.
func TestAnObservingSessionObservesAfterItsHoldsAreGone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, observing)
		token := w.exchange(t, s).AccessToken
		expired := w.begin(t, s, token, 1)
		must(s.Rollback(t.Context(), Caller{Token: &token}, w.begin(t, s, token, 1).ID, Rollback{}))(t)
		w.letPass(t, s, expired)
		w.settle(t, s, w.lease(t, s, 1, 1).ID, 1, 1)
		if usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 1}))(t); usage.WouldRefuse != "max_actions" {
			t.Errorf("%+v", usage)
		}
	})
}

// A session that never observed has none of its fields, and costs what it cost.
func TestASessionThatEnforcesHasNoFieldOfObserving(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		w.setEnforcement(t, s, false)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1}))(t)
		fields := must(peek(t, s).HGetAll(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
		for _, name := range []string{"r", "oc", "h", "gb"} {
			if value, has := fields[name]; has {
				t.Errorf("%s is %q", name, value)
			}
		}
		if got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); got.Observes || got.ObservedRefusals != nil {
			t.Errorf("%+v", got)
		}
	})
}

func size(m *sync.Map) (count int) {
	m.Range(func(_, _ any) bool { count++; return true })
	return count
}
