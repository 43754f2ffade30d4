package redisstore

import (
	"errors"
	"testing"
	"time"

	"remit/money"
)

// What an agent's limits or a limit per action would refuse is done in a session that observes, counted and named; what is spent
// counts in the agent's day.
func TestAnObservingSessionObservesTheLimitsOfItsAgentAndOfAnAction(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, AgentLimits{ValuePerDay: new(money.MicroUSD(100)), ActionsPerMinute: new(int64(3))},
			NewSession{MaxActions: 1000, MaxValue: 1000, MaxPerAction: new(money.MicroUSD(60)), MaxLease: time.Minute, Observes: true})
		token := w.exchange(t, s).AccessToken
		charge := func(value money.MicroUSD, want string) {
			t.Helper()
			usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: value}))(t)
			if usage.WouldRefuse != want {
				t.Errorf("a charge of %d would be refused by %q, want %q", value, usage.WouldRefuse, want)
			}
		}
		charge(60, "")
		charge(61, "max_value_usd_per_action")
		charge(1, "max_value_usd_per_day")
		charge(0, "max_actions_per_minute")
		begun := must(s.Begin(t.Context(), token, w.beginning(70)))(t)
		if begun.WouldRefuse != "max_value_usd_per_action" {
			t.Errorf("a begin would be refused by %q", begun.WouldRefuse)
		}
		changed := must(s.ChangeHold(t.Context(), token, begun.ID, NewHold{Value: new(money.MicroUSD(50))}))(t)
		if changed.WouldRefuse != "" || changed.Hold != 50 {
			t.Errorf("a smaller hold is %+v", changed)
		}
		w.wantToday(t, s, "charged and held", 60+61+1+50)
		if lease := w.lease(t, s, 1, 5); lease.WouldRefuse != "max_value_usd_per_day" {
			t.Errorf("a lease would be refused by %q", lease.WouldRefuse)
		}
		outcomes := must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{{Session: w.session.ID, Charge: Charge{Count: 1, Value: 2}}}, nil))(t)
		if got := outcomes[0]; got.Err != nil || got.Usage.WouldRefuse != "max_value_usd_per_day" {
			t.Errorf("an item of a batch: %+v", got)
		}
		w.wantObserved(t, s, true, 6)
		enforcing := w.another(t, s, NewSession{MaxValue: 1000})
		wantAgentLimit(t, "another session", enforcing.chargeValue(t, s, 1), "max_value_usd_per_day")
		w.setEnforcement(t, s, false)
		wantAgentLimit(t, "it enforces again", w.chargeValue(t, s, 1), "max_value_usd_per_day")
	})
}

// An approval takes what it grants from the parent; without room there the request stays pending.
func TestAnApprovalTakesFromTheParent(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		root, parent := w.agent, w.session
		w.session = must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{
			Agent: root.ID, Parent: parent.ID, MaxActions: 4, MaxValue: 50, Lifetime: time.Minute}))(t)
		token := w.exchange(t, s).AccessToken
		asked := w.ask(t, s, token, 2, 40)
		for range 2 { // again: the same answer, and nothing more is set aside
			if got := w.approve(t, s, asked.ID, Approval{}); got.Status != Approved {
				t.Errorf("it is %+v", got)
			}
			w.wantLimits(t, s, 6, 90)
			w.wantUsed(t, s, parent.ID, 0, 0, Delegated{6, 90})
		}
		beyond := w.ask(t, s, token, 0, 11)
		_, err := s.ApproveRequest(t.Context(), w.key, w.session.ID, beyond.ID, Approval{})
		var refused *ParentError
		if !errors.As(err, &refused) || refused.Limit != "max_value_usd" || refused.Parent != parent.ID {
			t.Errorf("beyond the parent: %v", err)
		}
		if got := w.readBoth(t, s, token, beyond.ID); got.Status != Pending {
			t.Errorf("it is %s", got.Status)
		}
		w.approve(t, s, beyond.ID, Approval{AddValue: new(money.MicroUSD(10))})
		w.wantLimits(t, s, 6, 100)
		w.wantUsed(t, s, parent.ID, 0, 0, Delegated{6, 100})
	})
}

func TestAnApprovalReservesInTheBudget(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		must(s.SetBudget(t.Context(), w.key, 100, BudgetMonth))(t)
		w.session = must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 10, MaxValue: 60, Lifetime: time.Minute}))(t)
		token := w.exchange(t, s).AccessToken
		w.approve(t, s, w.ask(t, s, token, 1, 40).ID, Approval{})
		w.wantLimits(t, s, 11, 100)
		_, err := s.ApproveRequest(t.Context(), w.key, w.session.ID, w.ask(t, s, token, 0, 1).ID, Approval{})
		var exhausted *BudgetError
		if !errors.As(err, &exhausted) || exhausted.Remaining != 0 {
			t.Errorf("beyond the budget: %v", err)
		}
		w.wantBudget(t, s, 100, 0, 0)
	})
}

// A child counts in its agent's open sessions, a cascade takes it out, and its holds are given back to its agent's day.
func TestAChildIsBoundByTheLimitsOfItsAgent(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, MaxPerAction: new(money.MicroUSD(30))})
		limited := must(s.CreateAgent(t.Context(), w.key, Agent{Name: "limited", Scopes: []string{}, Limits: AgentLimits{
			ValuePerDay: new(money.MicroUSD(40)), OpenSessions: new(int64(1))}}, [32]byte{3}, nil))(t)
		n := NewSession{Agent: limited.ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 50, Lifetime: time.Minute}
		child := must(s.CreateChildSession(t.Context(), w.byKey(), n))(t)
		if child.MaxPerAction == nil || *child.MaxPerAction != 30 {
			t.Errorf("the child's limit per action is %v, want its parent's", child.MaxPerAction)
		}
		_, err := s.CreateChildSession(t.Context(), w.byKey(), n)
		wantAgentLimit(t, "a second open session", err, LimitOpenSessions)
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{10, 50})
		must(s.Charge(t.Context(), w.byKey(), child.ID, Charge{Count: 1, Value: 15}))(t)
		own := tenant{key: w.key, agent: limited, session: child, secret: [32]byte{3}}
		own.begin(t, s, own.exchange(t, s).AccessToken, 25)
		_, err = s.Charge(t.Context(), w.byKey(), child.ID, Charge{Count: 1, Value: 1})
		wantAgentLimit(t, "the day is used", err, LimitValuePerDay)
		w.end(t, s, w.session.ID)
		own.wantToday(t, s, "its parent has ended", 15)
		w.wantUsed(t, s, w.session.ID, 2, 15, Delegated{})
		root := NewSession{Agent: limited.ID, MaxActions: 1, MaxValue: 1, Lifetime: time.Minute}
		must(s.CreateSession(t.Context(), w.key, root))(t)
	})
}

// What a budget has reserved bounds also a session that observes.
func TestAnObservingSessionStaysWithinWhatTheBudgetReserved(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		must(s.SetBudget(t.Context(), w.key, 100, BudgetMonth))(t)
		w.session = must(s.CreateSession(t.Context(), w.key, NewSession{
			Agent: w.agent.ID, MaxActions: 1, MaxValue: 60, Lifetime: time.Minute, Observes: true}))(t)
		w.charge(t, s, 2, 60) // beyond max_actions
		wantRefused := w.chargeValue(t, s, 1)
		var limit *LimitError
		if !errors.As(wantRefused, &limit) {
			t.Errorf("a charge beyond the reservation: %v", wantRefused)
		}
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		w.wantBudget(t, s, 0, 60, 40)
	})
}
