package client_test

import (
	"errors"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

func TestLimitsOfAnAgentHoldOverItsSessions(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	limits := client.AgentLimits{MaxValuePerDay: new(money.USD), MaxOpenSessions: new(int64(2))}
	if info, err := o.UpdateAgent(t.Context(), agent.ID(), client.AgentChanges{Limits: limits}); err != nil || *info.Limits.MaxValuePerDay != money.USD {
		t.Fatalf("%+v, %v", info, err)
	}
	first, second := sessionOf(o, agent, client.SessionParams{MaxValuePerAction: new(money.USD * 6 / 10)}), sessionOf(o, agent, client.SessionParams{})
	_, err := first.Charge(t.Context(), client.Charge{Value: money.USD * 7 / 10})
	if limit, _ := as[*client.LimitReached](err).(*client.LimitReached); limit == nil || limit.Limit != "max_value_usd_per_action" {
		t.Error(err)
	}
	if _, err := first.Charge(t.Context(), client.Charge{Value: money.USD * 6 / 10}); err != nil {
		t.Error(err)
	}
	_, err = second.Charge(t.Context(), client.Charge{Value: money.USD * 6 / 10})
	if limit, _ := as[*client.AgentLimitReached](err).(*client.AgentLimitReached); limit == nil || limit.Limit != "max_value_usd_per_day" || limit.ResetsAt.Before(time.Now()) {
		t.Error(err)
	}
	if info, err := o.GetAgent(t.Context(), agent.ID()); err != nil || *info.Usage.ValueUsedToday != money.USD*6/10 {
		t.Errorf("%+v, %v", info, err)
	}
	none := client.AgentLimits{MaxValuePerDay: new(money.MicroUSD(client.NoLimit)), MaxOpenSessions: new(int64(client.NoLimit))}
	if info, err := o.UpdateAgent(t.Context(), agent.ID(), client.AgentChanges{Limits: none}); err != nil || info.Limits.MaxValuePerDay != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := second.Charge(t.Context(), client.Charge{Value: money.USD}); err != nil {
		t.Error(err)
	}
}

func TestASessionObservesAndTriesAreFree(t *testing.T) {
	t.Parallel()
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{MaxValue: new(money.USD), Enforcement: "observe"})
	if u, err := session.DryRunCharge(t.Context(), client.Charge{Value: 2 * money.USD}); err != nil || u.WouldRefuse != "max_value_usd" {
		t.Errorf("%+v, %v", u, err)
	}
	if tried, err := session.DryRunBegin(t.Context(), client.TransactionParams{ActionType: "pay", Value: money.USD}); err != nil || tried.WouldRefuse != "" {
		t.Errorf("%+v, %v", tried, err)
	}
	if info, err := session.Get(t.Context()); err != nil || info.ActionCount != 0 || info.ValueHeld != 0 || info.ObservedRefusals != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if u, err := session.Charge(t.Context(), client.Charge{Value: 2 * money.USD}); err != nil || u.WouldRefuse != "max_value_usd" {
		t.Errorf("%+v, %v", u, err)
	}
	if info, err := o.UpdateSession(t.Context(), session.ID(), client.SessionLimits{Enforcement: "enforce"}); err != nil || info.ObservedRefusals != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := session.DryRunCharge(t.Context(), client.Charge{Value: 1}); as[*client.LimitReached](err) == nil {
		t.Error(err)
	}
}

func TestWhatIsAskedForIsApprovedOrDenied(t *testing.T) {
	t.Parallel()
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{MaxActions: 1, MaxValue: new(money.USD)})
	decide := func(decision func(id string) error) {
		for range 200 {
			if pending, err := o.Requests(t.Context(), session.ID(), client.MoreFilter{Status: "pending"}); err == nil && len(pending) > 0 {
				if err := decision(pending[0].ID); err != nil {
					t.Error(err)
				}
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	more := client.Charge{Count: 3, Value: 3 * money.USD, OnLimit: client.Ask, Reason: "3 pages", IdempotencyKey: "own"}
	go decide(func(id string) error {
		_, err := o.ApproveRequest(t.Context(), session.ID(), id, client.ApprovalParams{})
		return err
	})
	for range 2 { // the second is the first
		if u, err := session.Charge(t.Context(), more); err != nil || u.ActionCount != 3 || u.MaxActions != 3 || u.MaxValue != 3*money.USD {
			t.Errorf("%+v, %v", u, err)
		}
	}
	more.IdempotencyKey = ""
	go decide(func(id string) error {
		_, err := o.DenyRequest(t.Context(), session.ID(), id, "too dear")
		return err
	})
	_, err := session.Charge(t.Context(), more)
	refused, _ := as[*client.RequestNotApproved](err).(*client.RequestNotApproved)
	if refused == nil || refused.Request.Status != "denied" || refused.Request.Comment != "too dear" {
		t.Fatal(err)
	}
	if _, err := o.ApproveRequest(t.Context(), session.ID(), refused.Request.ID, client.ApprovalParams{}); !errors.Is(err, client.ErrRequestDecided) {
		t.Error(err)
	}
}

func TestATreeDividesASessionUnderABudget(t *testing.T) {
	t.Parallel()
	o := organization()
	if b, err := o.SetBudget(t.Context(), client.BudgetParams{MaxValue: 3 * money.USD, Period: "month"}); err != nil || b.ResetsAt == nil {
		t.Fatalf("%+v, %v", b, err)
	}
	agent := agentOf(o, "sessions:delegate")
	parent := sessionOf(o, agent, client.SessionParams{MaxActions: 10, MaxValue: new(2 * money.USD)})
	child, err := parent.CreateChild(t.Context(), client.SessionParams{MaxActions: 4, MaxValue: new(money.USD)})
	if err != nil || child.ParentSessionID != parent.ID() || child.AgentID != agent.ID() {
		t.Fatalf("%+v, %v", child, err)
	}
	_, err = parent.CreateChild(t.Context(), client.SessionParams{MaxActions: 4, MaxValue: new(2 * money.USD)})
	if limit, _ := as[*client.LimitReached](err).(*client.LimitReached); limit == nil || limit.Limit != "max_value_usd" || limit.ParentSessionID != parent.ID() {
		t.Error(err)
	}
	if _, err := agent.Session(child.ID).Charge(t.Context(), client.Charge{Value: money.USD / 4}); err != nil {
		t.Error(err)
	}
	tree, err := parent.Tree(t.Context())
	if err != nil || tree.ValueDelegated != money.USD || tree.ActionsDelegated != 4 || len(tree.Children) != 1 || tree.Children[0].ValueUsed != money.USD/4 {
		t.Errorf("%+v, %v", tree, err)
	}
	if err := agent.Session(child.ID).End(t.Context()); err != nil {
		t.Error(err)
	}
	if info, err := parent.Get(t.Context()); err != nil || info.ValueDelegated != 0 || info.ValueUsed != money.USD/4 || info.ActionCount != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	_, err = o.CreateSession(t.Context(), client.SessionParams{AgentID: agent.ID(), MaxValue: new(2 * money.USD)})
	if exhausted, _ := as[*client.BudgetExhausted](err).(*client.BudgetExhausted); exhausted == nil || exhausted.Remaining != money.USD {
		t.Error(err)
	}
	if b, err := o.GetBudget(t.Context()); err != nil || b.ValueReserved != 2*money.USD {
		t.Errorf("%+v, %v", b, err)
	}
	if err := o.DeleteBudget(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := o.GetBudget(t.Context()); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}
