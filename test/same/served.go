package main

import (
	"errors"

	"remit/client"
	"remit/money"
)

// served makes to the service those calls of fleet that need no state which a test cannot create.
func served(done *steps, remit *client.Client, o *client.Organization) {
	made := get(o.CreateAgent(ctx, client.AgentParams{Name: "planner", Scopes: []string{"sessions:delegate"}}))
	agent := remit.Agent(made.ID, string(made.Secret))
	servedSuspensions(done, o, agent)
	servedLimits(done, o, agent)
	servedTrials(done, o, agent)
	servedKeys(done, remit, o, agent)
	servedRequests(done, o, agent)
	servedTrees(done, o, agent)
	for event, err := range o.ListEvents(ctx, agent.ID(), "") {
		must(err)
		switch event.Type {
		case "session.more_requested":
			done.add("an event of a request for more", "%t", event.SessionRequestID != "")
		case "session.key_deleted":
			done.add("an event of a session key", "%t", event.SessionKeyID != "")
		case "session.delegated":
			done.add("an event of a child session", "%t", event.ChildSessionID != "")
		}
	}
}

// sessionFor creates a session of the agent.
func sessionFor(o *client.Organization, agent *client.Agent, p client.SessionParams) *client.Session {
	p.AgentID = agent.ID()
	return agent.Session(get(o.CreateSession(ctx, p)).ID)
}

func servedSuspensions(done *steps, o *client.Organization, agent *client.Agent) {
	session := sessionFor(o, agent, client.SessionParams{})
	done.add("suspend an agent", "%s", get(o.SuspendAgent(ctx, agent.ID(), "leak")).SuspensionReason)
	stopped := as[*client.AgentSuspended](second(session.Charge(ctx, client.Charge{})))
	done.add("the agent is suspended", "%t", !stopped.SuspendedAt.IsZero())
	done.add("resume an agent", "%t", get(o.ResumeAgent(ctx, agent.ID(), "")).SuspendedAt.IsZero())
	done.add("suspend all agents", "%d", get(o.SuspendAllAgents(ctx, "")))
	done.add("resume all agents", "%d", get(o.ResumeAllAgents(ctx)))
	done.add("suspend a session", "%s", get(o.SuspendSession(ctx, session.ID(), "odd")).SuspensionReason)
	paused := as[*client.SessionSuspended](second(session.Charge(ctx, client.Charge{})))
	done.add("the session is suspended", "%t", !paused.SuspendedAt.IsZero())
	done.add("resume a session", "%t", get(o.ResumeSession(ctx, session.ID(), "")).SuspendedAt.IsZero())
}

func servedLimits(done *steps, o *client.Organization, agent *client.Agent) {
	limits := client.AgentLimits{MaxValuePerDay: new(money.USD), MaxActionsPerMinute: new(int64(3)), MaxOpenSessions: new(int64(2))}
	changed := get(o.UpdateAgent(ctx, agent.ID(), client.AgentChanges{Description: new("limited"), Limits: limits}))
	done.add("change an agent", "%s", changed.Description)
	done.add("limits of an agent", "%s %d %d", changed.Limits.MaxValuePerDay, *changed.Limits.MaxActionsPerMinute, *changed.Limits.MaxOpenSessions)
	session := sessionFor(o, agent, client.SessionParams{MaxValuePerAction: new(money.USD * 3 / 4)})
	dear := as[*client.LimitReached](second(session.Charge(ctx, client.Charge{Value: money.USD * 4 / 5})))
	done.add("limit each action", "%s", dear.Limit)
	get(session.Charge(ctx, client.Charge{Value: money.USD * 3 / 4}))
	spent := as[*client.AgentLimitReached](second(session.Charge(ctx, client.Charge{Value: money.USD / 2})))
	done.add("a limit of the agent is reached", "%s %t %d %s", spent.Limit, !spent.ResetsAt.IsZero(), spent.NeededActions, spent.NeededValue)
	used := get(o.GetAgent(ctx, agent.ID())).Usage
	done.add("usage of an agent", "%s %d", used.ValueUsedToday, *used.OpenSessions)
	results := get(session.ChargeMany(ctx, []client.Charge{{Count: 2}, {Count: 3}}, client.BatchOptions{}))
	fast := as[*client.Problem](results[1].Err)
	done.add("when to send an item again", "%t %t", errors.Is(fast, client.ErrRateLimited), fast.RetryAfter > 0)
	none := client.AgentLimits{
		MaxValuePerDay: new(money.MicroUSD(client.NoLimit)), MaxActionsPerMinute: new(int64(client.NoLimit)), MaxOpenSessions: new(int64(client.NoLimit)),
	}
	done.add("remove a limit", "%t", get(o.UpdateAgent(ctx, agent.ID(), client.AgentChanges{Limits: none})).Limits.MaxValuePerDay == nil)
}

func servedTrials(done *steps, o *client.Organization, agent *client.Agent) {
	session := sessionFor(o, agent, client.SessionParams{MaxActions: 1, Enforcement: "observe"})
	done.add("try a charge", "%s", get(session.DryRunCharge(ctx, client.Charge{Count: 2})).WouldRefuse)
	done.add("try a transaction", "%t", get(session.DryRunBegin(ctx, client.TransactionParams{ActionType: "pay"})).WouldRefuse == "")
	get(session.Charge(ctx, client.Charge{Count: 2}))
	info := get(o.GetSession(ctx, session.ID()))
	done.add("look before enforcing", "%s %d", info.Enforcement, info.ObservedRefusals)
}

func servedKeys(done *steps, remit *client.Client, o *client.Organization, agent *client.Agent) {
	session := sessionFor(o, agent, client.SessionParams{})
	made := get(o.CreateSessionKey(ctx, session.ID(), client.SessionKeyParams{Name: "editor"}))
	done.add("create a session key", "%s %t", made.Name, made.SessionID == session.ID())
	keyed := get(remit.SessionWithKey(string(made.Key)))
	done.add("a session key names its session", "%t", keyed.ID() == session.ID())
	done.add("charge with a session key", "%d", get(keyed.Charge(ctx, client.Charge{})).ActionCount)
	done.add("a session key reaches its session alone", "%t", errors.Is(keyed.End(ctx), client.ErrSessionKeyOnly))
	listed := get(o.SessionKeys(ctx, session.ID()))
	done.add("list session keys", "%d %t", len(listed), listed[0].ID == made.ID)
	for len(get(o.SessionKeys(ctx, session.ID()))) < 8 {
		get(o.CreateSessionKey(ctx, session.ID(), client.SessionKeyParams{}))
	}
	ninth := second(o.CreateSessionKey(ctx, session.ID(), client.SessionKeyParams{}))
	done.add("too many session keys", "%t", errors.Is(ninth, client.ErrTooManySessionKeys))
	must(o.DeleteSessionKey(ctx, session.ID(), made.ID))
	done.add("delete a session key", "%t", errors.Is(second(keyed.Get(ctx)), client.ErrUnauthorized))
}

func servedRequests(done *steps, o *client.Organization, agent *client.Agent) {
	session := sessionFor(o, agent, client.SessionParams{MaxActions: 1})
	more := client.MoreParams{AddActions: 1, Reason: "more pages"}
	more.IdempotencyKey = "two-ask-1" // that of a charge with the key "two", which asks for the same
	asked := get(session.RequestMore(ctx, more))
	done.add("ask for more", "%s %d", asked.Status, asked.AddActions)
	done.add("list requests for more", "%d", len(get(o.Requests(ctx, session.ID(), client.MoreFilter{Status: "pending"}))))
	done.add("deny a request for more", "%s", get(o.DenyRequest(ctx, session.ID(), asked.ID, "too dear")).Status)
	done.add("read a request for more", "%s", get(o.GetRequest(ctx, session.ID(), asked.ID)).Comment)
	charge := client.Charge{Count: 2, OnLimit: client.Ask, Reason: "more pages", IdempotencyKey: "two"}
	denied := as[*client.RequestNotApproved](second(session.Charge(ctx, charge)))
	done.add("more is not approved", "%s %s", denied.Request.Status, denied.Request.Comment)
	err := second(o.ApproveRequest(ctx, session.ID(), asked.ID, client.ApprovalParams{}))
	done.add("a request was decided otherwise", "%t", errors.Is(err, client.ErrRequestDecided))
	more.IdempotencyKey = ""
	asked = get(session.RequestMore(ctx, more))
	done.add("approve a request for more", "%d", get(o.ApproveRequest(ctx, session.ID(), asked.ID, client.ApprovalParams{})).GrantedActions)
	done.add("wait for the decision", "%s", get(session.AwaitRequest(ctx, asked.ID)).Status)
	done.add("ask when a limit is reached", "%d", get(session.Charge(ctx, client.Charge{Count: 2, OnLimit: client.Ask, Reason: "more pages"})).MaxActions)
}

func servedTrees(done *steps, o *client.Organization, agent *client.Agent) {
	set := get(o.SetBudget(ctx, client.BudgetParams{MaxValue: 3 * money.USD, Period: "month"}))
	done.add("set a budget", "%s %s", set.MaxValue, set.Period)
	parent := sessionFor(o, agent, client.SessionParams{MaxActions: 10, MaxValue: new(2 * money.USD)})
	child := get(parent.CreateChild(ctx, client.SessionParams{MaxActions: 4, MaxValue: new(money.USD)}))
	done.add("create a child session", "%t", child.ParentSessionID == parent.ID())
	tree := get(o.SessionTree(ctx, parent.ID()))
	done.add("read a tree", "%s %d %d", tree.ValueDelegated, tree.ActionsDelegated, len(tree.Children))
	done.add("a tree that is not complete", "%t", tree.ChildrenTruncated)
	beyond := as[*client.LimitReached](second(parent.CreateChild(ctx, client.SessionParams{MaxActions: 4, MaxValue: new(2 * money.USD)})))
	done.add("a limit is reached", "%s %t", beyond.Limit, beyond.ParentSessionID == parent.ID())
	get(agent.Session(child.ID).Charge(ctx, client.Charge{Value: money.USD / 4}))
	must(agent.Session(child.ID).End(ctx))
	done.add("read a session", "%s", get(o.GetSession(ctx, parent.ID())).ValueUsed)
	exhausted := as[*client.BudgetExhausted](second(o.CreateSession(ctx, client.SessionParams{AgentID: agent.ID(), MaxValue: new(2 * money.USD)})))
	done.add("the budget is exhausted", "%s %t %s", exhausted.Remaining, !exhausted.ResetsAt.IsZero(), exhausted.NeededValue)
	budget := get(o.GetBudget(ctx))
	done.add("read a budget", "%s %s %s", budget.ValueReserved, budget.ValueUsed, budget.Remaining)
	must(o.DeleteBudget(ctx))
	done.add("delete a budget", "%t", errors.Is(second(o.GetBudget(ctx)), client.ErrNotFound))
}
