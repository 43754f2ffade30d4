package redisstore

import (
	"fmt"
	"slices"
	"testing"

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

// usageByType returns what the tenant's session used by action type, which must add up to what the session shows.
func (w tenant) usageByType(t *testing.T, s *Store) ([]TypeUsage, error) {
	t.Helper()
	lines, err := s.SessionUsage(t.Context(), w.byKey(), w.session.ID)
	if err != nil {
		return nil, err
	}
	shown := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
	var sum TypeUsage
	for _, used := range lines {
		sum.ActionCount += used.ActionCount
		sum.Value += used.Value
	}
	if sum.ActionCount != shown.ActionCount || sum.Value != shown.ValueUsed {
		t.Errorf("the lines add up to %+v, the session shows %d actions and %v", sum, shown.ActionCount, shown.ValueUsed)
	}
	return lines, nil
}

// wantTypes fails unless the tenant's session used this by action type.
func (w tenant) wantTypes(t *testing.T, s *Store, want ...TypeUsage) {
	t.Helper()
	if got := must(w.usageByType(t, s))(t); !slices.Equal(got, want) {
		t.Errorf("by action type %v, want %v", got, want)
	}
}

func TestASessionsUsageIsToldApartByActionType(t *testing.T) {
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 1000, MaxValue: 1000}, func(t *testing.T, s *Store, w tenant) {
		w.wantTypes(t, s)
		w.chargeTyped(t, s, typed("llm.call", 1, 5), typed("", 2, 3), typed("llm.call", 3, 0), typed("with space", 1, 7),
			typed("two\nlines", 1, 1), typed(`back\slash`, 1, 1), typed(`two\nlines`, 1, 2))
		w.wantTypes(t, s, TypeUsage{`back\slash`, 1, 1}, TypeUsage{"llm.call", 4, 5}, TypeUsage{"two\nlines", 1, 1}, TypeUsage{`two\nlines`, 1, 2},
			TypeUsage{"with space", 1, 7}, TypeUsage{"", 2, 3})
	})
}

// What the number of a type has no room for is counted beside it; see budgets/include/action_types.lua.
func TestAChargeCountsUnderItsTypeWhateverItsNumberHolds(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10_000_000, MaxValue: 1_000_000 * money.USD}, func(t *testing.T, s *Store, w tenant) {
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
	onTenantOf(t, Config{}, NewSession{MaxActions: 1000, MaxValue: 1000}, func(t *testing.T, s *Store, w tenant) {
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
