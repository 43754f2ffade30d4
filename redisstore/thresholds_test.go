package redisstore

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/event"
	"remit/money"
	"remit/redisstore/internal/feed"
)

const budgetThreshold = "budget.threshold"

// wantTold checks which thresholds the agent's trail tells of: of its sessions, and of its days.
func (w tenant) wantTold(t *testing.T, s *Store, want ...string) {
	t.Helper()
	var told []string
	for _, e := range w.follow(s)(t) {
		if e.Type != budgetThreshold {
			continue
		}
		told = append(told, fmt.Sprint(e.Threshold, " ", e.Limit))
		if ofDay := e.Budget == "agent_day" && e.Session == uuid.Nil; !ofDay && (e.Budget != "session" || e.Session == uuid.Nil) {
			t.Errorf("a threshold of nothing: %+v", e)
		}
	}
	if !slices.Equal(told, want) {
		t.Errorf("the trail tells of %q, want %q", told, want)
	}
}

func TestAThresholdSaysHowMuchCounts(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 1000, MaxCommitted: new(money.MicroUSD(500)), Thresholds: Thresholds{70}})
		w.charge(t, s, 7, 400)
		var told []Event
		for _, e := range w.follow(s)(t) {
			if e.Type == budgetThreshold {
				e.Request = ""
				told = append(told, e)
			}
		}
		want := []Event{
			{Type: budgetThreshold, Actor: w.byKeyActor(), Session: w.session.ID, Data: event.Data{Budget: "session", Limit: "max_actions",
				Threshold: 70, Actions: new(int64(7)), MaxActions: new(int64(10))}},
			{Type: budgetThreshold, Actor: w.byKeyActor(), Session: w.session.ID, Data: event.Data{Budget: "session", Limit: "max_committed_usd",
				Threshold: 70, Charged: new(money.MicroUSD(400)), MaxCommitted: new(money.MicroUSD(500))}},
		}
		if !reflect.DeepEqual(told, want) {
			t.Errorf("%+v, want %+v", told, want)
		}
	})
}

func TestADayOfAnAgentTellsOfItsThresholdsOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 100_000, MaxLease: time.Minute})
		token := w.exchange(t, s).AccessToken
		limit := func(value int64) {
			t.Helper()
			must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{Limits: NewAgentLimits{ValuePerDay: LimitChange{Given: true, Value: &value}}}))(t)
		}
		limit(1000)
		w.charge(t, s, 1, 799)
		w.wantTold(t, s)
		w.charge(t, s, 1, 1)
		want := []string{"80 max_value_usd_per_day"}
		w.wantTold(t, s, want...)
		w.charge(t, s, 1, 1)
		begun := w.begin(t, s, token, 199)
		want = append(want, "100 max_value_usd_per_day")
		w.wantTold(t, s, want...)
		must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		w.begin(t, s, token, 199)
		w.wantTold(t, s, want...)
		limit(2000) // half of it is used
		must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{{w.session.ID, Charge{Count: 1, Value: 600}}, {w.session.ID, Charge{Count: 1, Value: 1}}}, nil))(t)
		want = append(want, "80 max_value_usd_per_day")
		w.wantTold(t, s, want...)
		limit(1601)
		want = append(want, "100 max_value_usd_per_day")
		w.wantTold(t, s, want...)
		limit(3000)
		must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 1, MaxValue: 800, Lifetime: time.Second}))(t)
		w.wantTold(t, s, append(want, "80 max_value_usd_per_day")...)
	})
}

// What is reserved and used of the budget is noted in the organization's own trail, once in a period, and goes into its feed.
func TestABudgetOfAnOrganizationTellsOfItsThresholdsOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, withFeeds, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 1})
		told := func(want ...string) {
			t.Helper()
			var got []string
			for _, entry := range must(peek(t, s).XRange(t.Context(), s.keys.Events(w.key.Organization), "-", "+").Result())(t) {
				e := feed.TrailEvent(entry)
				got = append(got, fmt.Sprint(e.Type, " ", e.Budget, " ", e.Threshold, " ", *e.Charged, " of ", *e.MaxValue))
			}
			if !slices.Equal(got, want) {
				t.Errorf("the trail has %q, want %q", got, want)
			}
		}
		line := func(threshold, value, of int64) string {
			return fmt.Sprint("budget.threshold organization ", threshold, " ", money.MicroUSD(value), " of ", money.MicroUSD(of))
		}
		open := func(value money.MicroUSD, idem *Idempotency) Session {
			return must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: value, Lifetime: time.Hour, Idempotency: idem}))(t)
		}
		must(s.SetBudget(t.Context(), w.key, 1000, BudgetDay))(t)
		open(799, nil)
		told()
		one := open(1, &Idempotency{Key: "one"})
		want := []string{line(80, 800, 1000)}
		told(want...)
		must(s.ChangeLimits(t.Context(), w.key, one.ID, NewLimits{MaxValue: new(money.MicroUSD(201))}))(t)
		want = append(want, line(100, 1000, 1000))
		told(want...)
		must(s.EndSession(t.Context(), w.byKey(), one.ID))(t)
		two := open(201, nil)
		told(want...)
		must(s.SetBudget(t.Context(), w.key, 1100, BudgetDay))(t) // 91 %
		told(want...)
		open(100, nil)
		want = append(want, line(100, 1100, 1100))
		told(want...)
		must(s.EndSession(t.Context(), w.byKey(), two.ID))(t)
		must(s.SetBudget(t.Context(), w.key, 1123, BudgetDay))(t) // 80 %
		must(s.SetBudget(t.Context(), w.key, 2000, BudgetDay))(t)
		told(want...)
		must(s.SetBudget(t.Context(), w.key, 1000, BudgetDay))(t)
		want = append(want, line(80, 899, 1000))
		told(want...)
		eventually(t, "the feed has them", func() bool {
			found := must(s.OrganizationEvents(t.Context(), w.key, 0, 1000))(t)
			count := 0
			for _, e := range found.Events {
				if e.Type == budgetThreshold {
					count++
				}
			}
			return count == len(want)
		})
	})
}
