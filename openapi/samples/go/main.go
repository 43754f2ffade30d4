// Command go calls the operations of the API with the Go SDK. The API page shows its parts, and a test runs it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"remit/client"
	"remit/money"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("done")
}

func run(ctx context.Context) error {
	remit, err := client.FromEnv(client.Options{})
	if err != nil {
		return err
	}
	// sample: createOrganization
	made, err := remit.CreateOrganization(ctx, client.OrganizationParams{Name: "acme"})
	if err != nil {
		return err
	}
	org := remit.Organization(string(made.APIKey)) // keep the key: it is shown only once
	// end
	agent, err := administrate(ctx, remit, org, made.ID)
	if err != nil {
		return err
	}
	session, err := sessions(ctx, org, agent)
	if err != nil {
		return err
	}
	if err := transactions(ctx, org, session); err != nil {
		return err
	}
	if err := identity(ctx, remit, org, agent.ID()); err != nil {
		return err
	}
	if err := requests(ctx, org, session); err != nil {
		return err
	}
	if err := budgets(ctx, org, session.ID()); err != nil {
		return err
	}
	if err := sessionKeys(ctx, remit, org, session.ID()); err != nil {
		return err
	}
	if err := suspensions(ctx, org, agent.ID(), session.ID()); err != nil {
		return err
	}
	if err := events(ctx, org, agent.ID()); err != nil {
		return err
	}
	return ends(ctx, org, agent.ID(), session.ID())
}

func administrate(ctx context.Context, remit *client.Client, org *client.Organization, orgID string) (*client.Agent, error) {
	// sample: getOrganization
	info, err := org.Info(ctx, orgID)
	if err != nil {
		return nil, err
	}
	fmt.Println(info.Name, info.Usage["agents"], "agents")
	// end

	// sample: rotateApiKey
	rotated, err := org.RotateKey(ctx, orgID, client.RotateKeyParams{}) // the current key stays valid for 5 minutes
	if err != nil {
		return nil, err
	}
	org = remit.Organization(string(rotated.APIKey))
	// end

	// sample: createAgent
	scout, err := org.CreateAgent(ctx, client.AgentParams{Name: "scout", Scopes: []string{"read", "transactions:rollback"}})
	if err != nil {
		return nil, err
	}
	agent := remit.Agent(scout.ID, string(scout.Secret)) // keep the secret: it is shown only once
	// end

	// sample: listAgents
	for a, err := range org.Agents(ctx, client.AgentFilter{Status: "active"}) {
		if err != nil {
			return nil, err
		}
		fmt.Println(a.ID, a.Name)
	}
	// end

	// sample: getAgent
	shown, err := org.GetAgent(ctx, agent.ID())
	if err != nil {
		return nil, err
	}
	fmt.Println(shown.Name, shown.Scopes)
	// end

	// sample: rotateAgentSecret
	// The current secret stays valid for a minute. If it was stolen, set RevokeFamilies to end its tokens too.
	secret, err := org.RotateAgentSecret(ctx, agent.ID(), client.RotateSecretParams{Grace: time.Minute})
	if err != nil {
		return nil, err
	}
	agent = remit.Agent(agent.ID(), string(secret.Secret))
	// end
	return agent, tokens(ctx, remit, org, agent, string(secret.Secret))
}

func tokens(ctx context.Context, remit *client.Client, org *client.Organization, agent *client.Agent, secret string) error {
	// sample: exchangeSecret
	// An Agent exchanges its secret and refreshes its tokens by itself. For your own HTTP calls:
	token, err := agent.Token(ctx)
	if err != nil {
		return err
	}
	// end
	os.Setenv("TOKEN", token)

	// sample: introspectToken
	about, err := org.Introspect(ctx, token)
	if err != nil {
		return err
	}
	fmt.Println(about.Active, about.AgentID)
	// end

	// sample: listFamilies
	var family client.Family
	for f, err := range org.Families(ctx, agent.ID()) {
		if err != nil {
			return err
		}
		family = f
	}
	// end

	// sample: revokeFamily
	if err := org.RevokeFamily(ctx, agent.ID(), family.ID); err != nil {
		return err
	}
	// end
	return nil
}

func sessions(ctx context.Context, org *client.Organization, agent *client.Agent) (*client.Session, error) {
	// sample: createSession
	half := money.MicroUSD(500_000)
	made, err := org.CreateSession(ctx, client.SessionParams{
		AgentID: agent.ID(), MaxActions: 20, MaxValue: &half, ExpiresIn: time.Hour,
	})
	if err != nil {
		return nil, err
	}
	session := agent.Session(made.ID)
	// end

	// sample: listSessions
	for s, err := range org.Sessions(ctx, client.SessionFilter{Status: "active"}) {
		if err != nil {
			return nil, err
		}
		fmt.Println(s.ID, s.ActionCount, s.MaxActions)
	}
	// end

	// sample: getSession
	info, err := session.Get(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Println(info.Status, info.ValueUsed)
	// end

	// sample: changeLimits
	changed, err := org.UpdateSession(ctx, made.ID, client.SessionLimits{AddActions: 10, AddValue: 5_000_000})
	if err != nil {
		return nil, err
	}
	fmt.Println(changed.MaxValue)
	// end

	// sample: charge
	used, err := session.Charge(ctx, client.Charge{ActionType: "llm.call", Value: 370_000}) // 0.37 USD
	if err != nil {
		return nil, err // a *client.LimitReached charged nothing
	}
	fmt.Println(used.RemainingActions, used.RemainingValue)
	// end

	// sample: chargeBatch
	results, err := session.ChargeMany(ctx, []client.Charge{{Value: 20_000}, {Value: 30_000}}, client.BatchOptions{})
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		fmt.Println(r.Usage.ActionCount, r.Err)
	}
	// end
	return session, nil
}

func transactions(ctx context.Context, org *client.Organization, session *client.Session) error {
	// sample: beginTransaction
	tx, err := session.Begin(ctx, client.TransactionParams{ActionType: "refund", Value: 2_000_000})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx, "not finished") }() // does nothing after Commit
	// end

	// sample: listTransactions
	for t, err := range org.Transactions(ctx, client.TransactionFilter{Status: "pending"}) {
		if err != nil {
			return err
		}
		fmt.Println(t.ID, t.ValueHeld)
	}
	// end

	// sample: getTransaction
	info, err := tx.Get(ctx)
	if err != nil {
		return err
	}
	fmt.Println(info.Status, info.ExpiresAt)
	// end

	// sample: changeHold
	more := money.MicroUSD(2_500_000)
	if err := tx.Update(ctx, client.TransactionChanges{Value: &more, ExpiresIn: time.Hour}); err != nil {
		return err
	}
	// end

	// sample: commitTransaction
	cost := money.MicroUSD(1_250_000)
	if err := tx.Commit(ctx, client.CommitParams{Value: &cost}); err != nil {
		return err
	}
	// end

	// sample: rollbackTransaction
	if err := org.Transaction(tx.ID()).Reverse(ctx, "wrong customer"); err != nil {
		return err
	}
	// end
	return nil
}

func requests(ctx context.Context, org *client.Organization, session *client.Session) error {
	// sample: requestMore
	// A charge with OnLimit: client.Ask does this by itself, and waits.
	asked, err := session.RequestMore(ctx, client.MoreParams{AddValue: 5_000_000, Reason: "12 of 40 invoices are left"})
	if err != nil {
		return err
	}
	// end

	// sample: listRequests
	pending, err := org.Requests(ctx, session.ID(), client.MoreFilter{Status: "pending"})
	if err != nil {
		return err
	}
	fmt.Println(pending[0].Reason, pending[0].AddValue)
	// end

	// sample: approveRequest
	half := money.MicroUSD(2_500_000)
	approved, err := org.ApproveRequest(ctx, session.ID(), asked.ID, client.ApprovalParams{AddValue: &half, Comment: "half for now"})
	if err != nil {
		return err
	}
	fmt.Println(approved.Status, approved.GrantedValue)
	// end

	// sample: getRequest
	decided, err := session.AwaitRequest(ctx, asked.ID) // returns when the request is decided, or the session has ended
	if err != nil {
		return err
	}
	fmt.Println(decided.Status, decided.Comment)
	// end

	again, err := session.RequestMore(ctx, client.MoreParams{AddActions: 10, Reason: "one more page"})
	if err != nil {
		return err
	}
	asked = again
	// sample: denyRequest
	if _, err := org.DenyRequest(ctx, session.ID(), asked.ID, "the report is long enough"); err != nil {
		return err
	}
	// end
	return nil
}

func budgets(ctx context.Context, org *client.Organization, sessionID string) error {
	// sample: setBudget
	budget, err := org.SetBudget(ctx, client.BudgetParams{MaxValue: 500_000_000, Period: "month"})
	if err != nil {
		return err
	}
	fmt.Println(budget.Remaining)
	// end

	// sample: getBudget
	now, err := org.GetBudget(ctx)
	if err != nil {
		return err
	}
	fmt.Println(now.ValueUsed, now.ValueReserved, now.Remaining)
	// end

	// sample: deleteBudget
	if err := org.DeleteBudget(ctx); err != nil {
		return err
	}
	// end

	// sample: getSessionTree
	tree, err := org.SessionTree(ctx, sessionID)
	if err != nil {
		return err
	}
	for _, child := range tree.Children {
		fmt.Println(child.AgentID, child.ValueUsed, child.MaxValue)
	}
	// end
	return nil
}

func suspensions(ctx context.Context, org *client.Organization, agentID, sessionID string) error {
	// sample: changeAgent
	perMinute := int64(600)
	limited, err := org.UpdateAgent(ctx, agentID, client.AgentChanges{Limits: client.AgentLimits{MaxActionsPerMinute: &perMinute}})
	if err != nil {
		return err
	}
	fmt.Println(*limited.Limits.MaxActionsPerMinute)
	// end

	// sample: suspendAgent
	stopped, err := org.SuspendAgent(ctx, agentID, "it loops")
	if err != nil {
		return err
	}
	fmt.Println(stopped.SuspendedAt)
	// end

	// sample: resumeAgent
	if _, err := org.ResumeAgent(ctx, agentID, ""); err != nil {
		return err
	}
	// end

	// sample: suspendAgents
	suspended, err := org.SuspendAllAgents(ctx, "an incident")
	if err != nil {
		return err
	}
	fmt.Println(suspended, "agents are suspended")
	// end

	// sample: resumeAgents
	resumed, err := org.ResumeAllAgents(ctx)
	if err != nil {
		return err
	}
	fmt.Println(resumed, "agents go on")
	// end

	// sample: suspendSession
	if _, err := org.SuspendSession(ctx, sessionID, "to be checked"); err != nil {
		return err
	}
	// end

	// sample: resumeSession
	if _, err := org.ResumeSession(ctx, sessionID, "checked"); err != nil {
		return err
	}
	// end
	return nil
}

func sessionKeys(ctx context.Context, remit *client.Client, org *client.Organization, sessionID string) error {
	// sample: createSessionKey
	made, err := org.CreateSessionKey(ctx, sessionID, client.SessionKeyParams{Name: "editor"})
	if err != nil {
		return err
	}
	keyed, err := remit.SessionWithKey(string(made.Key)) // in the program that has the key
	if err != nil {
		return err
	}
	left, err := keyed.Charge(ctx, client.Charge{})
	if err != nil {
		return err
	}
	fmt.Println(left.RemainingActions)
	// end

	// sample: listSessionKeys
	listed, err := org.SessionKeys(ctx, sessionID)
	if err != nil {
		return err
	}
	fmt.Println(len(listed))
	// end

	// sample: deleteSessionKey
	if err := org.DeleteSessionKey(ctx, sessionID, made.ID); err != nil {
		return err
	}
	// end
	return nil
}

func events(ctx context.Context, org *client.Organization, agentID string) error {
	// sample: listEvents
	for e, err := range org.ListEvents(ctx, agentID, "") {
		if err != nil {
			return err
		}
		fmt.Println(e.OccurredAt, e.Type)
	}
	// end
	return nil
}

func ends(ctx context.Context, org *client.Organization, agentID, sessionID string) error {
	// sample: endSession
	if err := org.EndSession(ctx, sessionID); err != nil {
		return err
	}
	// end

	// sample: revokeAgent
	if err := org.RevokeAgent(ctx, agentID); err != nil {
		return err
	}
	// end
	return nil
}
