package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/money"
)

// limitedTenant is newTenant with limits of the agent.
func limitedTenant(t *testing.T, s *Store, l AgentLimits, n NewSession) tenant {
	t.Helper()
	w := tenant{key: newOrganization(t, s), secret: [32]byte{2}}
	w.agent = must(s.CreateAgent(t.Context(), w.key, Agent{Name: "scout", Scopes: []string{"read"}, Limits: l}, w.secret, nil))(t)
	if n.MaxActions == 0 {
		n.MaxActions = 1_000_000
	}
	n.Agent, n.Lifetime = w.agent.ID, max(n.Lifetime, 48*time.Hour)
	w.session = must(s.CreateSession(t.Context(), w.key, n))(t)
	return w
}

// another returns the tenant with another session of the same agent.
func (w tenant) another(t *testing.T, s *Store, n NewSession) tenant {
	t.Helper()
	n.Agent, n.MaxActions, n.Lifetime = w.agent.ID, 1_000_000, max(n.Lifetime, 48*time.Hour)
	w.session = must(s.CreateSession(t.Context(), w.key, n))(t)
	return w
}

func perDay(value money.MicroUSD) AgentLimits { return AgentLimits{ValuePerDay: &value} }

// chargeValue charges one action with this value.
func (w tenant) chargeValue(t *testing.T, s *Store, value money.MicroUSD) error {
	t.Helper()
	_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: value})
	return err
}

// wantAgentLimit fails unless err is the refusal by this limit, "" for none.
func wantAgentLimit(t *testing.T, what string, err error, limit string) *AgentLimitError {
	t.Helper()
	var refused *AgentLimitError
	if limit == "" && err == nil {
		return nil
	}
	if !errors.As(err, &refused) || refused.Limit != limit {
		t.Errorf("%s: %v, want a refusal by %q", what, err, limit)
		return &AgentLimitError{}
	}
	return refused
}

// wantToday fails unless the agent has used this value today.
func (w tenant) wantToday(t *testing.T, s *Store, what string, want money.MicroUSD) {
	t.Helper()
	got := must(s.Agent(t.Context(), w.key, w.agent.ID))(t).Usage.ValueToday
	if got == nil || *got != want {
		t.Errorf("%s: %v are used today, want %v", what, got, want)
	}
}

const day = 24 * time.Hour

// fromMidnight runs the test on a Redis whose clock it sets, from the start of a UTC day.
func fromMidnight(t *testing.T, test func(t *testing.T, s *Store, clock func(time.Duration))) {
	t.Helper()
	mini, midnight := miniredis.RunT(t), time.Now().UTC().Truncate(day)
	clock := func(ahead time.Duration) { mini.SetTime(midnight.Add(ahead)) }
	clock(0)
	test(t, openStore(t, Config{}, "redis://"+mini.Addr(), nil), clock)
}

func TestTheLimitPerDayBoundsAllSessionsOfAnAgentTogether(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 1000, MaxLease: time.Minute})
		other := w.another(t, s, NewSession{MaxValue: 1000})
		grant := w.exchange(t, s)
		wantAgentLimit(t, "charge", w.chargeValue(t, s, 60), "")
		wantAgentLimit(t, "charge of the other session", other.chargeValue(t, s, 41), LimitValuePerDay)
		wantAgentLimit(t, "charge without a value", other.chargeValue(t, s, 0), "")
		outcomes := must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{
			{other.session.ID, Charge{Count: 1, Value: 30}}, {other.session.ID, Charge{Count: 1, Value: 11}},
			{w.session.ID, Charge{Count: 1, Value: 5}}, {other.session.ID, Charge{Count: 1, Value: 5}},
		}, nil))(t)
		for i, limit := range []string{"", LimitValuePerDay, "", ""} {
			wantAgentLimit(t, fmt.Sprintf("charge %d of the batch", i), outcomes[i].Err, limit)
		}
		w.wantToday(t, s, "after the batch", 100)
		_, err := s.Begin(t.Context(), grant.AccessToken, w.beginning(1))
		wantAgentLimit(t, "begin", err, LimitValuePerDay)
		_, err = s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxValue: 1, Lifetime: time.Second, Partial: true})
		refused := wantAgentLimit(t, "lease", err, LimitValuePerDay)
		if left := time.Until(refused.ResetsAt); left < -time.Minute || left > day || refused.ResetsAt.Truncate(day) != refused.ResetsAt {
			t.Errorf("the day resets at %v", refused.ResetsAt)
		}
		got := must(s.Session(t.Context(), w.byKey(), other.session.ID))(t)
		if got.ActionCount != 3 || got.ValueUsed != 35 {
			t.Errorf("the refused charges changed the session: %+v", got.Usage)
		}
		if n := len(w.noted(t, s, "agent.limit_reached")); n != 1 {
			t.Errorf("%d events note that the limit is reached", n)
		}
	})
}

// noted returns the events of this type in the agent's audit trail.
func (w tenant) noted(t *testing.T, s *Store, what string) []Event {
	t.Helper()
	events, _, err := s.Events(t.Context(), w.byKey(), w.agent.ID, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var found []Event
	for _, event := range events {
		if event.Type == what {
			found = append(found, event)
		}
	}
	return found
}

// Each row begins a hold of 40 on a day of 100, where 30 are charged, and does something with it on the same day or the next.
func TestWhatCountsInADayIsGivenBackOnTheSameDayOnly(t *testing.T) {
	t.Parallel()
	type step = func(t *testing.T, s *Store, w tenant, g AccessToken, held Transaction)
	commit := func(value money.MicroUSD) step {
		return func(t *testing.T, s *Store, _ tenant, g AccessToken, held Transaction) {
			t.Helper()
			must(s.Commit(t.Context(), g, held.ID, Commit{Value: &value}))(t)
		}
	}
	change := func(value money.MicroUSD) step {
		return func(t *testing.T, s *Store, _ tenant, g AccessToken, held Transaction) {
			t.Helper()
			must(s.ChangeHold(t.Context(), g, held.ID, NewHold{Value: &value}))(t)
		}
	}
	rollback := func(t *testing.T, s *Store, w tenant, _ AccessToken, held Transaction) {
		t.Helper()
		must(s.Rollback(t.Context(), w.byKey(), held.ID, Rollback{}))(t)
	}
	end := func(t *testing.T, s *Store, w tenant, _ AccessToken, _ Transaction) {
		t.Helper()
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
	}
	for _, test := range []struct {
		name       string
		steps      []step
		same, next money.MicroUSD // used, after the steps are done on the same day, or on the next
	}{
		{"nothing", nil, 70, 0},
		{"commit of the hold", []step{commit(40)}, 70, 0},
		{"commit of less", []step{commit(10)}, 40, 0},
		{"commit of more", []step{commit(55)}, 85, 15},
		{"commit of more than fits", []step{commit(500)}, 100, 100},
		{"rollback", []step{rollback}, 30, 0},
		{"rollback of a commit", []step{commit(40), rollback}, 30, 0},
		{"rollback of a commit of more", []step{commit(55), rollback}, 30, 0},
		{"end of the session", []step{end}, 30, 0},
		{"raised hold", []step{change(60)}, 90, 20},
		{"raised hold rolled back", []step{change(60), rollback}, 30, 0},
		{"raised hold, committed whole", []step{change(60), commit(60)}, 90, 20},
		{"raised hold, committed in part", []step{change(60), commit(50)}, 80, 10},
		{"raised hold, lowered", []step{change(60), change(35)}, 65, 0},
		{"raised hold, session ended", []step{change(60), end}, 30, 0},
		{"lowered hold", []step{change(15)}, 45, 0},
		{"lowered hold, committed", []step{change(15), commit(20)}, 50, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for when, ahead := range map[string]time.Duration{"same day": 0, "next day": day} {
				fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
					w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 10_000, Lifetime: 96 * time.Hour})
					grant := w.exchange(t, s)
					wantAgentLimit(t, "charge", w.chargeValue(t, s, 30), "")
					n := w.beginning(40)
					n.Lifetime = 72 * time.Hour
					held := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
					clock(ahead)
					for _, do := range test.steps {
						do(t, s, w, grant.AccessToken, held)
					}
					want := test.same
					if ahead > 0 {
						want = test.next
					}
					w.wantToday(t, s, when, want)
					if want > 0 && want < 100 { // what is said to be left can be charged, and no more
						other := w.another(t, s, NewSession{MaxValue: 1000})
						wantAgentLimit(t, when+", one more than the rest", other.chargeValue(t, s, 101-want), LimitValuePerDay)
						wantAgentLimit(t, when+", the rest", other.chargeValue(t, s, 100-want), "")
					}
				})
			}
		})
	}
}

func TestAHoldThatExpiresMakesRoomForEverySessionOfTheAgent(t *testing.T) {
	t.Parallel()
	type operation = func(t *testing.T, s *Store, w tenant, g AccessToken) error
	operations := map[string]operation{
		"charge": func(t *testing.T, s *Store, w tenant, _ AccessToken) error { return w.chargeValue(t, s, 100) },
		"batch": func(t *testing.T, s *Store, w tenant, _ AccessToken) error {
			outcomes, err := s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{{w.session.ID, Charge{Count: 1, Value: 100}}}, nil)
			return errors.Join(err, outcomes[0].Err)
		},
		"charge with an idempotency key": func(t *testing.T, s *Store, w tenant, _ AccessToken) error {
			_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 100, Idempotency: &Idempotency{Key: "key"}})
			return err
		},
		"begin": func(t *testing.T, s *Store, w tenant, g AccessToken) error {
			_, err := s.Begin(t.Context(), g, w.beginning(100))
			return err
		},
		"lease": func(t *testing.T, s *Store, w tenant, _ AccessToken) error {
			_, err := s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxValue: 100, Lifetime: time.Second})
			return err
		},
		"read": func(t *testing.T, s *Store, w tenant, _ AccessToken) error {
			w.wantToday(t, s, "after the expiry", 0)
			return nil
		},
	}
	for name, do := range operations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
				w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 1000})
				grant := w.exchange(t, s)
				for i := range 4 { // two holds in each of two sessions; the last one outlives the others
					n := w.beginning(20)
					n.Lifetime = time.Minute
					if i == 2 {
						w = w.another(t, s, NewSession{MaxValue: 1000})
						n.Session = w.session.ID
					}
					must(s.Begin(t.Context(), grant.AccessToken, n))(t)
				}
				long := w.beginning(20)
				long.Lifetime = time.Hour
				must(s.Begin(t.Context(), grant.AccessToken, long))(t)
				w.wantToday(t, s, "before the expiry", 100)
				other := w.another(t, s, NewSession{MaxValue: 1000, MaxLease: time.Minute})
				clock(time.Minute)
				w.wantToday(t, s, "when four have expired", 20)
				wantAgentLimit(t, "a charge beside the last hold", other.chargeValue(t, s, 81), LimitValuePerDay)
				clock(time.Hour)
				if err := do(t, s, other, grant.AccessToken); err != nil {
					t.Errorf("when all have expired: %v", err)
				}
			})
		})
	}
}

// A session whose end has released its holds stops no other session when they would have been due.
func TestAnEndedSessionWhoseHoldsWereDueStopsNoOther(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *Store, w tenant) error{
		"by itself": func(t *testing.T, s *Store, w tenant) error {
			_, err := s.EndSession(t.Context(), w.byKey(), w.session.ID)
			return err
		},
		"with its parent": func(t *testing.T, s *Store, w tenant) error {
			return s.endOne(t.Context(), w.key.Organization, place{w.session.ID, w.agent.ID})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
				w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 1000})
				grant := w.exchange(t, s)
				for range 3 {
					n := w.beginning(20)
					n.Lifetime = time.Minute
					must(s.Begin(t.Context(), grant.AccessToken, n))(t)
				}
				other := w.another(t, s, NewSession{MaxValue: 1000})
				if err := end(t, s, w); err != nil {
					t.Fatal(err)
				}
				clock(time.Minute)
				if _, err := s.Begin(t.Context(), grant.AccessToken, other.beginning(60)); err != nil {
					t.Errorf("a hold in another session: %v", err)
				}
				wantAgentLimit(t, "a charge in another session", other.chargeValue(t, s, 40), "")
				w.wantToday(t, s, "only that hold and that charge count", 100)
				due := must(peek(t, s).ZRange(t.Context(), s.keys.AgentHolds(w.agent.ID), 0, -1).Result())(t)
				if len(due) != 1 || due[0] != other.session.ID.String() {
					t.Errorf("sessions with holds are %v, want %s", due, other.session.ID)
				}
			})
		})
	}
}

func TestALeaseCountsWholeInTheDayAndItsRestComesBackOnThatDay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		when                              string
		ahead                             time.Duration
		unspent, overspent, charged, over money.MicroUSD // used after each settlement; of the second, charged and overage
	}{
		{"same day", 0, 60, 100, 100, 10},
		{"next day", day, 0, 50, 110, 0},
	} {
		fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
			w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 1000, MaxLease: time.Hour})
			grantLease := func(value money.MicroUSD) Lease {
				t.Helper()
				return must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxValue: value, Lifetime: time.Hour, Partial: true}))(t)
			}
			first, second := grantLease(60), grantLease(60)
			if second.MaxValue != 40 {
				t.Errorf("a partial lease of what is left of the day has %v", second.MaxValue)
			}
			w.wantToday(t, s, "both leases", 100)
			clock(test.ahead + time.Second)
			settle := func(l Lease, value money.MicroUSD) Settlement {
				t.Helper()
				return *must(s.SettleLease(t.Context(), w.byKey(), l.ID, NewSettlement{ActionCount: 1, ValueUsed: value}))(t).Settlement
			}
			settle(second, 0)
			settle(second, 0)
			w.wantToday(t, s, test.when+", one settled", test.unspent)
			settled := settle(first, 110)
			w.wantToday(t, s, test.when+", one settled with more", test.overspent)
			got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			if settled.Overage != test.over || got.ValueUsed != test.charged || got.ValueOverage != test.over {
				t.Errorf("%s: %+v, %+v", test.when, settled, got)
			}
		})
	}
}

func TestARenewalIsBoundByTheLimitsOfTheAgent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, AgentLimits{ValuePerDay: new(money.MicroUSD(100)), ActionsPerMinute: new(int64(10))},
			NewSession{MaxValue: 1000, MaxLease: time.Minute})
		l := must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 4, MaxValue: 100, Lifetime: time.Minute}))(t)
		renew := func(l Lease, used money.MicroUSD, n NewLease) Settlement {
			t.Helper()
			n.Lifetime = time.Minute
			return *must(s.SettleLease(t.Context(), w.byKey(), l.ID, NewSettlement{ActionCount: 4, ValueUsed: used, Renew: &n}))(t).Settlement
		}
		second := renew(l, 30, NewLease{MaxActions: 5, MaxValue: 200, Partial: true})
		if second.Renewed == nil || second.Renewed.MaxValue != 70 || second.Renewed.MaxActions != 5 {
			t.Fatalf("the renewal has not what is left: %+v", second)
		}
		w.wantToday(t, s, "renewed", 100)
		if third := renew(*second.Renewed, 70, NewLease{MaxValue: 1}); third.Renewed != nil || third.Refusal != "agent_limit_reached" || third.Limit != LimitValuePerDay {
			t.Errorf("beyond the day: %+v", third)
		}
		_, err := s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 2, Lifetime: time.Minute})
		if refused := wantAgentLimit(t, "more actions than fit now", err, LimitActionsPerMinute); refused.RetryAfter <= 0 || refused.RetryAfter > 6*time.Second {
			t.Errorf("to be repeated after %v", refused.RetryAfter)
		}
	})
}

func TestAtTheTurnOfADayExactlyOneDaysValueIsAvailable(t *testing.T) {
	t.Parallel()
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		const midnight = day
		clock(midnight - time.Hour)
		w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 10_000, Lifetime: 10 * day})
		spend := func(when string, want int) {
			t.Helper()
			charged := 0
			for range 150 {
				if w.chargeValue(t, s, 1) == nil {
					charged++
				}
			}
			if charged != want {
				t.Errorf("%s %d could be charged, want %d", when, charged, want)
			}
		}
		spend("on a day", 100)
		clock(midnight - time.Millisecond)
		spend("at its end", 0)
		clock(midnight)
		spend("on the next day", 100)
		clock(midnight - time.Minute)
		spend("after the clock has gone back over midnight", 0)
		clock(midnight + time.Hour)
		spend("later on the next day", 0)
		clock(midnight + 3*day)
		spend("days later", 100)
		if n := len(w.noted(t, s, "agent.limit_reached")); n < 3 || n > 5 {
			t.Errorf("%d events note that the limit is reached on three days", n)
		}
	})
}

// The backlog drains while the test runs, so the clock is the test's.
func TestActionsPerMinuteFollowGCRA(t *testing.T) {
	t.Parallel()
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		w := limitedTenant(t, s, AgentLimits{ActionsPerMinute: new(int64(7))}, NewSession{MaxValue: 1000})
		charge := func(count int64, limit string, retryAfter time.Duration) {
			t.Helper()
			_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: count})
			if refused := wantAgentLimit(t, "charge", err, limit); refused != nil && refused.RetryAfter != retryAfter {
				t.Errorf("to be repeated after %v, want %v", refused.RetryAfter, retryAfter)
			}
		}
		step := func(ms int64) { clock(time.Duration(ms) * time.Millisecond) }
		charge(8, LimitActionsPerMinute, 0) // never
		charge(7, "", 0)
		charge(1, LimitActionsPerMinute, 8572*time.Millisecond) // 60 s / 7, rounded up
		step(8571)
		charge(1, LimitActionsPerMinute, time.Millisecond)
		step(8572)
		charge(1, "", 0)
		charge(1, LimitActionsPerMinute, 8571*time.Millisecond) // 4 units were left over
		charge(3, LimitActionsPerMinute, 25714*time.Millisecond)
		step(8572 + 60_000)
		charge(7, "", 0)
		charge(1, LimitActionsPerMinute, 8572*time.Millisecond)
		step(0)
		charge(7, "", 0) // the clock was set back by more than a minute
		charge(1, LimitActionsPerMinute, 8572*time.Millisecond)
	})
}

// The minute is kept as a distance from the start of the day that counts.
func TestTheMinuteOfAnAgentGoesOnWhenTheDayTurns(t *testing.T) {
	t.Parallel()
	for _, perDay := range []*money.MicroUSD{nil, new(money.MicroUSD(100))} {
		fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
			w := limitedTenant(t, s, AgentLimits{ActionsPerMinute: new(int64(60)), ValuePerDay: perDay}, NewSession{MaxValue: 1000, Lifetime: 20 * day})
			charge := func(when string, count int64, value money.MicroUSD, limit string, retryAfter time.Duration) {
				t.Helper()
				_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: count, Value: value})
				if refused := wantAgentLimit(t, when, err, limit); refused != nil && refused.RetryAfter != retryAfter {
					t.Errorf("%s: to be repeated after %v, want %v", when, refused.RetryAfter, retryAfter)
				}
			}
			clock(day - time.Second)
			charge("before midnight", 60, 100, "", 0)
			clock(day)
			charge("at midnight, one more than is free", 2, 0, LimitActionsPerMinute, time.Second)
			charge("at midnight", 1, 100, "", 0)
			clock(day - 10*time.Second)
			charge("before midnight again", 1, 0, LimitActionsPerMinute, 11*time.Second)
			clock(day + 30*time.Second)
			charge("as much as is free", 30, 0, "", 0)
			charge("more than is free", 1, 0, LimitActionsPerMinute, time.Second)
			clock(10*day + 30*time.Second)
			charge("days later", 60, 100, "", 0)
			charge("days later, more", 1, 0, LimitActionsPerMinute, time.Second)
		})
	}
}

func TestAClockThatIsSetBackHoldsAnAgentUpForAMinuteAtMost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		back time.Duration
		free int64 // of 60, after 20 were used
	}{{0, 40}, {time.Millisecond, 39}, {10 * time.Second, 30}, {40 * time.Second, 0}, {99 * time.Second, 0}, {101 * time.Second, 60}, {3 * day, 60}} {
		fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
			clock(4 * day)
			w := limitedTenant(t, s, AgentLimits{ActionsPerMinute: new(int64(60))}, NewSession{Lifetime: 20 * day})
			charge := func(what string, count int64, limit string) *AgentLimitError {
				t.Helper()
				_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: count})
				return wantAgentLimit(t, fmt.Sprintf("%v back, %s", test.back, what), err, limit)
			}
			charge("before", 20, "")
			clock(4*day - test.back)
			if test.free > 0 {
				charge("what is free", test.free, "")
			}
			refused := charge("more", 1, LimitActionsPerMinute)
			if refused.RetryAfter <= 0 || refused.RetryAfter > time.Minute {
				t.Errorf("%v back: one more fits after %v", test.back, refused.RetryAfter)
			}
			clock(4*day - test.back + refused.RetryAfter - time.Millisecond)
			charge("a moment before it fits", 1, LimitActionsPerMinute)
			clock(4*day - test.back + refused.RetryAfter)
			charge("when it fits", 1, "")
		})
	}
}

func TestALowerLimitPerMinuteHoldsAnAgentUpForAMinuteAtMost(t *testing.T) {
	t.Parallel()
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		clock(time.Hour)
		w := limitedTenant(t, s, AgentLimits{ActionsPerMinute: new(int64(1000))}, NewSession{})
		charge := func(count int64) error {
			_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: count})
			return err
		}
		set := func(most int64) {
			must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{Limits: NewAgentLimits{ActionsPerMinute: LimitChange{true, &most}}}))(t)
		}
		wantAgentLimit(t, "within the limit", charge(1000), "")
		set(10)
		if refused := wantAgentLimit(t, "beyond the lower one", charge(1), LimitActionsPerMinute); refused.RetryAfter != 6*time.Second {
			t.Errorf("to be repeated after %v", refused.RetryAfter)
		}
		set(20)
		wantAgentLimit(t, "within a higher one", charge(10), "")
		wantAgentLimit(t, "beyond it", charge(1), LimitActionsPerMinute)
		clock(time.Hour + time.Minute)
		wantAgentLimit(t, "a minute later", charge(20), "")
	})
}

func TestOpenSessionsOfAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		w := limitedTenant(t, s, AgentLimits{OpenSessions: new(int64(2))}, NewSession{})
		create := func(lifetime time.Duration) (Session, error) {
			return s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: lifetime})
		}
		open := func(want int64) {
			t.Helper()
			if got := must(s.Agent(t.Context(), w.key, w.agent.ID))(t).Usage.OpenSessions; got == nil || *got != want {
				t.Errorf("%v sessions are open, want %d", got, want)
			}
		}
		second := must(create(time.Hour))(t)
		_, err := create(time.Hour)
		wantAgentLimit(t, "a third session", err, LimitOpenSessions)
		open(2)
		must(s.EndSession(t.Context(), w.byKey(), second.ID))(t)
		must(s.EndSession(t.Context(), w.byKey(), second.ID))(t)
		open(1)
		third := must(create(time.Hour))(t)
		must(s.ChangeLimits(t.Context(), w.key, third.ID, NewLimits{Lifetime: new(3 * time.Hour)}))(t)
		clock(2 * time.Hour)
		_, err = create(time.Hour)
		wantAgentLimit(t, "beside one that lasts longer now", err, LimitOpenSessions)
		clock(3 * time.Hour)
		must(create(time.Hour))(t)
		open(2)
		if n := len(w.noted(t, s, "agent.limit_reached")); n != 1 {
			t.Errorf("%d events note that the limit is reached", n)
		}
	})
}

func TestCallsThatShareACommandAreJudgedOneByOne(t *testing.T) {
	t.Parallel()
	onEachSingle(t, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, perDay(50), NewSession{MaxValue: 1000})
		other := w.another(t, s, NewSession{MaxValue: 1000})
		token := byToken(w.exchange(t, s)) // it calls nothing before the charge
		g := newGate(t, s)
		var charged atomic.Int64
		var calls []func()
		for i := range 24 {
			id := []uuid.UUID{w.session.ID, other.session.ID}[i%2]
			calls = append(calls, func() {
				_, err := s.Charge(context.Background(), token, id, Charge{Count: 1, Value: 7})
				if err == nil {
					charged.Add(1)
				} else {
					wantAgentLimit(t, "charge", err, LimitValuePerDay)
				}
			})
		}
		g.pass(t, s, calls...)
		if _, sent := g.sent.Load(chargeSession.Script.MergedSHA()); !sent || charged.Load() != 7 {
			t.Errorf("%d charges of 7 fit into 50; merged: %v", charged.Load(), sent)
		}
	})
}

func TestAnActionAboveTheLimitOfTheSessionIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000, MaxPerAction: new(money.MicroUSD(10))})
		grant := w.exchange(t, s)
		want := func(what string, err error, limit string) {
			t.Helper()
			var refused *LimitError
			if limit == "" && err != nil || limit != "" && (!errors.As(err, &refused) || refused.Limit != limit || refused.Usage.MaxValue != 1000) {
				t.Errorf("%s: %v", what, err)
			}
		}
		all := func(limit string) {
			t.Helper()
			want("a charge of the limit", w.chargeValue(t, s, 10), "")
			want("a charge above it", w.chargeValue(t, s, 11), limit)
			outcomes := must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{
				{w.session.ID, Charge{Count: 1, Value: 11}}, {w.session.ID, Charge{Count: 1, Value: 10}}}, nil))(t)
			want("in a batch", outcomes[0].Err, limit)
			want("in a batch, of the limit", outcomes[1].Err, "")
			_, err := s.Begin(t.Context(), grant.AccessToken, w.beginning(11))
			want("a begin", err, limit)
			held := must(s.Begin(t.Context(), grant.AccessToken, w.beginning(10)))(t)
			_, err = s.ChangeHold(t.Context(), grant.AccessToken, held.ID, NewHold{Value: new(money.MicroUSD(11))})
			want("a raised hold", err, limit)
			must(s.Commit(t.Context(), grant.AccessToken, held.ID, Commit{}))(t)
		}
		all("max_value_usd_per_action")
		changed := must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{PerAction: LimitChange{Given: true}}))(t)
		if changed.MaxPerAction != nil || changed.MaxCommitted != nil || changed.MaxValue != 1000 {
			t.Errorf("without the limit: %+v", changed)
		}
		all("")
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{PerAction: LimitChange{true, new(int64(10))}}))(t)
		got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		if got.MaxPerAction == nil || *got.MaxPerAction != 10 || got.MaxCommitted != nil {
			t.Errorf("with the limit again: %+v", got)
		}
		all("max_value_usd_per_action")
		if n := len(w.noted(t, s, "session.limit_reached")); n != 2 {
			t.Errorf("%d events note that the limit has refused something", n)
		}
		held := w.begin(t, s, grant.AccessToken, 10)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{PerAction: LimitChange{true, new(int64(4))}}))(t)
		_, err := s.ChangeHold(t.Context(), grant.AccessToken, held.ID, NewHold{Value: new(money.MicroUSD(8))})
		want("a hold that shrinks, above a lower limit", err, "")
		_, err = s.ChangeHold(t.Context(), grant.AccessToken, held.ID, NewHold{Value: new(money.MicroUSD(9))})
		want("a hold that grows again", err, "max_value_usd_per_action")
	})
}

// A limit that is removed and set again must not give back to its new count what the old one has counted.
func TestALimitThatIsSetAgainOnTheSameDayGoesOnCounting(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 1000})
		grant := w.exchange(t, s)
		change := func(c NewAgentLimits) Agent {
			t.Helper()
			return must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{Limits: c}))(t)
		}
		value := func(most int64) NewAgentLimits { return NewAgentLimits{ValuePerDay: LimitChange{true, &most}} }
		none := NewAgentLimits{ValuePerDay: LimitChange{Given: true}}
		held := must(s.Begin(t.Context(), grant.AccessToken, w.beginning(40)))(t)
		if got := change(none); got.Limits.ValuePerDay != nil || got.Usage.ValueToday != nil {
			t.Errorf("without the limit %+v, %+v", got.Limits, got.Usage)
		}
		must(s.Commit(t.Context(), grant.AccessToken, held.ID, Commit{}))(t)
		must(s.Begin(t.Context(), grant.AccessToken, w.beginning(400)))(t)
		if got := change(value(100)); *got.Usage.ValueToday != 40 {
			t.Errorf("with the limit again %+v", got.Usage)
		}
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		w.wantToday(t, s, "after the end of a session whose hold did not count", 40)
		w = w.another(t, s, NewSession{MaxValue: 1000})
		change(value(50))
		wantAgentLimit(t, "beyond the lower limit", w.chargeValue(t, s, 11), LimitValuePerDay)
		change(value(30))
		wantAgentLimit(t, "beyond a limit below what is used", w.chargeValue(t, s, 1), LimitValuePerDay)
		wantAgentLimit(t, "without a value", w.chargeValue(t, s, 0), "")
		change(value(60))
		wantAgentLimit(t, "within the raised limit", w.chargeValue(t, s, 20), "")
		w.wantToday(t, s, "in all", 60)
	})
}

func TestLimitsChangeOneByOne(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, AgentLimits{}, NewSession{MaxValue: 1000})
		set := func(most int64) LimitChange { return LimitChange{true, &most} }
		none := LimitChange{Given: true}
		for i, test := range []struct {
			change NewAgentLimits
			want   string
		}{
			{NewAgentLimits{ActionsPerMinute: set(60)}, "- 60 -"},
			{NewAgentLimits{ValuePerDay: set(0), OpenSessions: set(0)}, "0 60 0"},
			{NewAgentLimits{ActionsPerMinute: none}, "0 - 0"},
			{NewAgentLimits{OpenSessions: set(1_000_000)}, "0 - 1000000"},
			{NewAgentLimits{OpenSessions: set(1_000_000)}, "0 - 1000000"}, // changes nothing
			{NewAgentLimits{ValuePerDay: none, OpenSessions: none}, "- - -"},
		} {
			must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, ""))(t)
			changed := must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{Limits: test.change}))(t)
			must(s.ResumeAgent(t.Context(), w.key, w.agent.ID, ""))(t)
			read := must(s.Agent(t.Context(), w.key, w.agent.ID))(t)
			events := w.noted(t, s, "agent.changed")
			for what, got := range map[string]AgentLimits{"change": changed.Limits, "read": read.Limits, "event": *events[len(events)-1].Limits} {
				if text := strings.ReplaceAll(givenLimits(got).text(), "=", "-"); text != test.want && !(text == "" && test.want == "- - -") {
					t.Errorf("after change %d, by its %s: %s, want %s", i, what, text, test.want)
				}
			}
			if i == 3 && len(events) != 4 || i == 4 && len(events) != 4 {
				t.Errorf("after change %d there are %d events", i, len(events))
			}
		}
		if fields := must(peek(t, s).HMGet(t.Context(), s.keys.Agent(w.agent.ID), "restricted", "max_open_sessions").Result())(t); fields[0] != nil || fields[1] != nil {
			t.Errorf("an agent without limits has %q", fields)
		}
	})
}
