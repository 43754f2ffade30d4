package redisstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
)

// typed is a charge with an action type.
func typed(actionType string, count int64, value money.MicroUSD) Charge {
	return Charge{ActionType: actionType, Count: count, Value: value}
}

func (w tenant) chargeTyped(t *testing.T, s *Store, charges ...Charge) {
	t.Helper()
	for _, c := range charges {
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, c))(t)
	}
}

// wantTypes fails unless the tenant's session used this by action type, and the sum is what the session shows.
func (w tenant) wantTypes(t *testing.T, s *Store, want ...TypeUsage) {
	t.Helper()
	got := must(s.SessionUsage(t.Context(), w.byKey(), w.session.ID))(t)
	if !slices.Equal(got, want) {
		t.Errorf("by action type %v, want %v", got, want)
	}
	shown := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
	var sum TypeUsage
	for _, used := range got {
		sum.ActionCount += used.ActionCount
		sum.Value += used.Value
	}
	if sum.ActionCount != shown.ActionCount || sum.Value != shown.ValueUsed {
		t.Errorf("the lines add up to %+v, the session shows %d actions and %v", sum, shown.ActionCount, shown.ValueUsed)
	}
}

func TestASessionsUsageIsToldApartByActionType(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000})
		w.wantTypes(t, s)
		w.chargeTyped(t, s, typed("llm.call", 1, 5), typed("", 2, 3), typed("llm.call", 3, 0), typed("with space", 1, 7),
			typed("two\nlines", 1, 1), typed(`back\slash`, 1, 1), typed(`two\nlines`, 1, 2))
		w.wantTypes(t, s, TypeUsage{`back\slash`, 1, 1}, TypeUsage{"llm.call", 4, 5}, TypeUsage{"two\nlines", 1, 1}, TypeUsage{`two\nlines`, 1, 2},
			TypeUsage{"with space", 1, 7}, TypeUsage{"", 2, 3})
	})
}

func TestARefusedChargeAndADryRunCountUnderNoType(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 2, MaxValue: 10})
		w.chargeTyped(t, s, typed("a", 1, 1), Charge{ActionType: "b", Count: 1, Value: 1, DryRun: true})
		if _, err := s.Charge(t.Context(), w.byKey(), w.session.ID, typed("c", 1, 100)); err == nil {
			t.Error("a charge beyond the limit passes")
		}
		w.wantTypes(t, s, TypeUsage{"a", 1, 1})
		w.chargeTyped(t, s, typed("a", 1, 9)) // all of both limits
		w.wantTypes(t, s, TypeUsage{"a", 2, 10})
	})
}

// A type may be new in any charge, also in one that comes near a limit.
func TestANewTypeIsCountedHoweverNearTheLimitIs(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 10})
		var want []TypeUsage
		for i := range 10 {
			c := typed(fmt.Sprint("type ", i), 1, 1)
			if i%2 == 1 {
				c.Idempotency = &Idempotency{Key: c.ActionType}
			}
			w.chargeTyped(t, s, c)
			want = append(want, TypeUsage{c.ActionType, 1, 1})
			w.wantTypes(t, s, want...)
		}
	})
}

func TestABatchCountsEachChargeUnderItsType(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 100})
		of := func(c Charge) BatchCharge { return BatchCharge{w.session.ID, c} }
		scoped := typed("a", 1, 1)
		scoped.Scope = "read"
		must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{of(typed("a", 1, 2)), of(typed("b c", 2, 3)), of(typed("a", 1, 101)),
			of(typed("", 1, 4)), of(scoped)}, nil))(t)
		w.wantTypes(t, s, TypeUsage{"a", 2, 3}, TypeUsage{"b c", 2, 3}, TypeUsage{"", 1, 4})
	})
}

func TestATransactionCountsUnderItsTypeFromBeginToRollback(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 100})
		token := w.exchange(t, s).AccessToken
		w.chargeTyped(t, s, typed("order.place", 1, 1))
		begun := must(s.Begin(t.Context(), token, w.beginning(10)))(t)
		w.wantTypes(t, s, TypeUsage{"order.place", 2, 1})
		cost := money.MicroUSD(7)
		must(s.Commit(t.Context(), token, begun.ID, Commit{Value: &cost}))(t)
		w.wantTypes(t, s, TypeUsage{"order.place", 2, 8})
		must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		w.wantTypes(t, s, TypeUsage{"order.place", 2, 1})
	})
}

func TestASettlementTellsALeaseApart(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, leasing)
		l := w.lease(t, s, 6, 60)
		w.wantTypes(t, s, TypeUsage{"", 6, 0})
		n := NewSettlement{ActionCount: 12, ValueUsed: 90, Types: []TypeUsage{{"a", 4, 50}, {"b", 8, 40}}}
		for range 2 { // the second settles nothing again
			must(s.SettleLease(t.Context(), w.byKey(), l.ID, n))(t)
			w.wantTypes(t, s, TypeUsage{"a", 4, 50}, TypeUsage{"b", 6, 40}) // 10 actions are the session's limit
		}
	})
}

// What the number of a type has no room for is counted beside it; see budgets/include/action_types.lua.
func TestAChargeCountsUnderItsTypeWhateverItsNumberHolds(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10_000_000, MaxValue: 1_000_000 * money.USD})
		want := TypeUsage{ActionType: "a"}
		for _, c := range []Charge{typed("a", 1, 1), typed("a", 999_998, 1), typed("a", 1, 1), typed("a", 999_999, 0), typed("a", 1_000_000, 5),
			typed("a", 1, 8_999_999_999), typed("a", 1, 1), typed("a", 1, 8_999_999_998), typed("a", 1, 9_000_000_000), typed("a", 1, 700_000*money.USD),
			typed("a", 1, 1), typed("a", 1, 0)} {
			w.chargeTyped(t, s, c)
			want.ActionCount += c.Count
			want.Value += c.Value
			w.wantTypes(t, s, want)
			w.wantReport(t, s, everyDay(records.ByActionType), records.UsageLine{ActionType: "a", ActionCount: want.ActionCount, Value: want.Value})
		}
	})
}

func TestASessionTells64TypesApart(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000})
		want := []TypeUsage{}
		for i := range 64 {
			name := fmt.Sprintf("type.%02d", i)
			w.chargeTyped(t, s, typed(name, 1, 1))
			want = append(want, TypeUsage{name, 1, 1})
		}
		begun := must(s.Begin(t.Context(), w.exchange(t, s).AccessToken, w.beginning(5)))(t)
		w.chargeTyped(t, s, typed("one too many", 1, 2), typed("type.63", 1, 1), typed(kernel.OtherTypes, 1, 3))
		must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{{w.session.ID, typed("yet another", 1, 4)}}, nil))(t)
		want[63] = TypeUsage{"type.63", 2, 2}
		w.wantTypes(t, s, append([]TypeUsage{{kernel.OtherTypes, 4, 9}}, want...)...)
		must(s.Commit(t.Context(), w.exchange(t, s).AccessToken, begun.ID, Commit{}))(t)
		w.wantTypes(t, s, append([]TypeUsage{{kernel.OtherTypes, 4, 14}}, want...)...)
		must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		w.wantTypes(t, s, append([]TypeUsage{{kernel.OtherTypes, 4, 9}}, want...)...)
	})
}

func TestAChildsUsageIsItsOwn(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		w.chargeTyped(t, s, typed("a", 1, 1))
		child := w.child(t, s, w.session.ID, 10, 20)
		must(s.Charge(t.Context(), w.byKey(), child.ID, typed("b", 2, 5)))(t)
		w.wantTypes(t, s, TypeUsage{"a", 1, 1})
		must(s.EndSession(t.Context(), w.byKey(), child.ID))(t)
		w.wantUsed(t, s, w.session.ID, 3, 6, Delegated{})
		own := must(s.SessionUsage(t.Context(), w.byKey(), w.session.ID))(t)
		if want := []TypeUsage{{"a", 1, 1}}; !slices.Equal(own, want) {
			t.Errorf("once the child is closed, its parent used %v, want %v", own, want)
		}
	})
}

func TestUsageIsReadByWhoMayReadTheSession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, stranger := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 1}), newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 1})
		must(s.SessionUsage(t.Context(), byToken(w.exchange(t, s)), w.session.ID))(t)
		for name, c := range map[string]Caller{"a stranger's key": stranger.byKey(), "a stranger's token": byToken(stranger.exchange(t, s))} {
			_, err := s.SessionUsage(t.Context(), c, w.session.ID)
			wantError(t, name, err, ErrUnknownSession)
		}
		_, err := s.SessionUsage(t.Context(), w.byKey(), uuid.New())
		wantError(t, "a session that does not exist", err, ErrUnknownSession)
	})
}
