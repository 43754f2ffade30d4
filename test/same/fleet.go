package main

import (
	"errors"

	"remit/client"
	"remit/money"
)

// fleet makes the calls that suspend, limit and divide.
func fleet(done *steps, remit *client.Client) {
	o, session := remit.Organization("rmk_1"), remit.Agent("a1", "rms_1").Session("s1")
	suspensions(done, o)
	agentLimits(done, o)
	trials(done, o, session)
	requests(done, o, session)
	asking(done, remit.Agent("a1", "rms_1").Session("s2"))
	trees(done, o, session)
	fleetRefusals(done)
}

func suspensions(done *steps, o *client.Organization) {
	done.add("suspend an agent", "%s", get(o.SuspendAgent(ctx, "a1", "leak")).SuspensionReason)
	done.add("resume an agent", "%s", get(o.ResumeAgent(ctx, "a1", "")).ID)
	done.add("suspend all agents", "%d", get(o.SuspendAllAgents(ctx, "leak")))
	done.add("resume all agents", "%d", get(o.ResumeAllAgents(ctx)))
	done.add("suspend a session", "%t", get(o.SuspendSession(ctx, "s1", "odd")).SuspendedAt.IsZero())
	done.add("resume a session", "%s", get(o.ResumeSession(ctx, "s1", "fixed")).ID)
}

func agentLimits(done *steps, o *client.Organization) {
	changed := get(o.UpdateAgent(ctx, "a1", client.AgentChanges{
		Name: "spy", Description: new(""), Metadata: map[string]int{"tier": 2}, Scopes: &[]string{"read"},
		Limits: client.AgentLimits{MaxValuePerDay: new(money.USD / 2), MaxActionsPerMinute: new(int64(client.NoLimit))},
	}))
	done.add("change an agent", "%s", changed.ID)
	used := changed.Usage
	done.add("limits of an agent", "%s %t %d", changed.Limits.MaxValuePerDay, changed.Limits.MaxActionsPerMinute == nil, *changed.Limits.MaxOpenSessions)
	done.add("usage of an agent", "%s %d %d", used.ValueUsedToday, used.ResetsAt.Unix(), *used.OpenSessions)
	get(o.CreateAgent(ctx, client.AgentParams{Name: "limited", Limits: client.AgentLimits{MaxOpenSessions: new(int64(3))}}))
	get(o.UpdateSession(ctx, "s1", client.SessionLimits{MaxValuePerAction: new(money.MicroUSD(client.NoLimit))}))
	done.add("remove a limit", "true")
	observing := get(o.CreateSession(ctx, client.SessionParams{AgentID: "a1", MaxValuePerAction: new(money.USD), Enforcement: "observe"}))
	done.add("limit each action", "%s", observing.MaxValuePerAction)
	done.add("look before enforcing", "%s %d", observing.Enforcement, observing.ObservedRefusals)
}

func trials(done *steps, o *client.Organization, session *client.Session) {
	done.add("try a charge", "%s", get(session.DryRunCharge(ctx, client.Charge{Value: money.USD, Count: 2})).WouldRefuse)
	tried := get(session.DryRunBegin(ctx, client.TransactionParams{ActionType: "pay", Value: money.USD}))
	done.add("try a transaction", "%s", tried.WouldRefuse)
}

func requests(done *steps, o *client.Organization, session *client.Session) {
	asked := get(session.RequestMore(ctx, client.MoreParams{AddActions: 2, AddValue: 1, Reason: "more pages"}))
	done.add("ask for more", "%s %s", asked.Status, asked.AddValue)
	decided := get(session.AwaitRequest(ctx, asked.ID))
	done.add("wait for the decision", "%s %d %s %s", decided.Status, decided.GrantedActions, decided.GrantedValue, decided.Comment)
	get(session.GetRequest(ctx, asked.ID))
	done.add("read a request for more", "%s", get(o.GetRequest(ctx, "s1", asked.ID)).Reason)
	get(session.Requests(ctx, client.MoreFilter{}))
	done.add("list requests for more", "%d", len(get(o.Requests(ctx, "s1", client.MoreFilter{Status: "approved"}))))
	part := client.ApprovalParams{AddActions: new(int64(1)), AddValue: new(money.MicroUSD), Comment: "ok"}
	done.add("approve a request for more", "%s", get(o.ApproveRequest(ctx, "s1", "r1", part)).Status)
	done.add("deny a request for more", "%s", get(o.DenyRequest(ctx, "s1", "r1", "too dear")).Status)
}

func asking(done *steps, session *client.Session) {
	charge := client.Charge{Value: money.USD, OnLimit: client.Ask, Reason: "more pages", IdempotencyKey: "own"}
	done.add("ask when a limit is reached", "%d", get(session.Charge(ctx, charge)).ActionCount)
	charge.IdempotencyKey = "denied"
	denied := as[*client.RequestNotApproved](second(session.Charge(ctx, charge)))
	done.add("more is not approved", "%s %s %s", denied.Limit, denied.Request.Status, denied.Request.Comment)
}

func trees(done *steps, o *client.Organization, session *client.Session) {
	get(session.CreateChild(ctx, client.SessionParams{MaxValue: new(money.USD)}))
	get(o.CreateSession(ctx, client.SessionParams{AgentID: "a2", ParentSessionID: "s1"}))
	done.add("create a child session", "true")
	get(o.SessionTree(ctx, "s1"))
	tree := get(session.Tree(ctx))
	done.add("read a tree", "%s %d %s %s", tree.ValueDelegated, tree.ActionsDelegated, tree.Children[0].ParentSessionID, tree.Children[0].Children[0].ID)
	done.add("a tree that is not complete", "%t", tree.Children[0].Children[0].ChildrenTruncated)
	set := get(o.SetBudget(ctx, client.BudgetParams{MaxValue: 100 * money.USD, Period: "month"}))
	done.add("set a budget", "%s %s", set.MaxValue, set.Period)
	budget := get(o.GetBudget(ctx))
	done.add("read a budget", "%s %s %s %d", budget.ValueReserved, budget.ValueUsed, budget.Remaining, budget.ResetsAt.Unix())
	must(o.DeleteBudget(ctx))
	done.add("delete a budget", "true")
}

func fleetRefusals(done *steps) {
	once := get(client.FromEnv(client.Options{MaxAttempts: 1})).Organization("rmk_1")
	refused := func(code string) error { return second(once.CreateAgent(ctx, client.AgentParams{Name: code})) }
	agent := as[*client.AgentLimitReached](refused("agent_limit_reached"))
	done.add("a limit of the agent is reached", "%s %d %s", agent.Limit, agent.ResetsAt.Unix(), answered(agent))
	budget := as[*client.BudgetExhausted](refused("budget_exhausted"))
	done.add("the budget is exhausted", "%s %d %s", budget.Remaining, budget.ResetsAt.Unix(), answered(budget))
	done.add("the agent is suspended", "%d", as[*client.AgentSuspended](refused("agent_suspended")).SuspendedAt.Unix())
	done.add("the session is suspended", "%d", as[*client.SessionSuspended](refused("session_suspended")).SuspendedAt.Unix())
	done.add("a request was decided otherwise", "%t", errors.Is(refused("request_decided"), client.ErrRequestDecided))
	done.add("the gateway holds a transaction", "%t", errors.Is(refused("held_by_gateway"), client.ErrHeldByGateway))
}
