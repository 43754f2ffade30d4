package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"remit/client"
	"remit/money"
)

var ctx = context.Background()

// An organization lets an agent spend at most half a dollar, and the agent charges each step before it takes it.
func Example() {
	remit, err := client.New(startedService().url, client.Options{})
	if err != nil {
		panic(err)
	}
	acme, _ := remit.CreateOrganization(ctx, client.OrganizationParams{Name: "acme"})
	organization := remit.Organization(string(acme.APIKey))
	scout, _ := organization.CreateAgent(ctx, client.AgentParams{Name: "scout", Scopes: []string{"read"}})
	budget, _ := organization.CreateSession(ctx, client.SessionParams{AgentID: scout.ID, MaxValue: new(money.USD / 2)})

	session := remit.Agent(scout.ID, string(scout.Secret)).Session(budget.ID)
	for range 2 {
		left, err := session.Charge(ctx, client.Charge{ActionType: "llm.call", Value: 37 * money.USD / 100})
		if limit, is := errors.AsType[*client.LimitReached](err); is {
			fmt.Println("refused for", limit.Limit, "with", limit.RemainingValue, "USD left")
			return
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(left.RemainingValue, "USD left")
	}
	// Output:
	// 0.13 USD left
	// refused for max_value_usd with 0.13 USD left
}

// With the caller's own key a charge takes effect once, even across a restart of the caller.
func ExampleSession_Charge_idempotencyKey() {
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{})

	for range 3 {
		left, err := session.Charge(ctx, client.Charge{ActionType: "payment", Value: 5 * money.USD, IdempotencyKey: "invoice-4711"})
		fmt.Println(left.ActionCount, left.ValueUsed, err)
	}
	// Output:
	// 1 5 <nil>
	// 1 5 <nil>
	// 1 5 <nil>
}

// A transaction holds what may be spent and charges what was spent.
func ExampleSession_Begin() {
	o := organization()
	session := sessionOf(o, agentOf(o, "transactions:rollback"), client.SessionParams{MaxValue: new(10 * money.USD)})

	pay := func() error {
		tx, err := session.Begin(ctx, client.TransactionParams{
			ActionType: "payment", PreState: map[string]any{"balance": 100}, Value: 4 * money.USD,
		})
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx, "not finished") // does nothing after a Commit
		fmt.Println("holds", tx.Info().ValueHeld)

		// … pay …
		return tx.Commit(ctx, client.CommitParams{Value: new(3 * money.USD), PostState: map[string]any{"balance": 97}})
	}
	fmt.Println(pay())
	now, _ := session.Get(ctx)
	fmt.Println(now.ValueUsed, "used,", now.ValueHeld, "held")
	// Output:
	// holds 4
	// <nil>
	// 3 used, 0 held
}

// A failure half-way is rolled back, and the prior state is available to restore.
func ExampleTransaction_Rollback() {
	o := organization()
	session := sessionOf(o, agentOf(o, "transactions:rollback"), client.SessionParams{})

	tx, err := session.Begin(ctx, client.TransactionParams{
		ActionType: "edit", PreState: map[string]any{"text": "as it was"}, Value: money.USD,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(tx.Rollback(ctx, "the edit failed"))
	fmt.Println(tx.Info().Status, string(tx.Info().PreState))
	fmt.Println(errors.Is(tx.Commit(ctx, client.CommitParams{}), client.ErrTransactionDone))
	// Output:
	// <nil>
	// rolled_back {"text":"as it was"}
	// true
}

// Many sessions are charged in one request, each all or nothing.
func ExampleAgent_ChargeMany() {
	o := organization()
	agent := agentOf(o)
	roomy, tight := sessionOf(o, agent, client.SessionParams{}), sessionOf(o, agent, client.SessionParams{MaxActions: 1})

	results, err := agent.ChargeMany(ctx, []client.SessionCharge{
		{SessionID: roomy.ID(), Charge: client.Charge{Count: 5}},
		{SessionID: tight.ID(), Charge: client.Charge{Count: 5}},
	}, client.BatchOptions{})
	if err != nil {
		panic(err)
	}
	_, limited := errors.AsType[*client.LimitReached](results[1].Err)
	fmt.Println(results[0].Usage.ActionCount, limited)
	// Output: 5 true
}

// The audit trail is read from its beginning and then followed, until the loop ends it.
func ExampleAgent_Events() {
	o := organization()
	agent := agentOf(o)
	session := sessionOf(o, agent, client.SessionParams{MaxActions: 1})
	session.Charge(ctx, client.Charge{Count: 2})

	for event, err := range agent.Events(ctx, "") {
		if err != nil {
			panic(err)
		}
		fmt.Println(event.Type, event.Actor.Type)
		if event.Type == "session.limit_reached" {
			fmt.Println(string(event.Data))
			break
		}
	}
	// Output:
	// agent.created api_key
	// session.created api_key
	// token.issued agent
	// session.limit_reached agent
	// {"limit":"max_actions"}
}

// Action types say what was paid for.
func ExampleOrganization_Usage() {
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{})
	session.Charge(ctx, client.Charge{ActionType: "llm.call", Value: 37 * money.USD / 100})
	session.Charge(ctx, client.Charge{ActionType: "search", Value: money.USD / 10, Count: 5})

	lines, err := o.Usage(ctx, client.UsageParams{GroupBy: []string{"action_type"}})
	if err != nil {
		panic(err)
	}
	for _, line := range lines {
		fmt.Println(*line.ActionType, line.ActionCount, line.Value)
	}
	// Output:
	// llm.call 1 0.37
	// search 5 0.1
}

// The events of all agents are followed from where they were left. After a crash, this loop would begin after the last number that
// it has stored.
func ExampleOrganization_AllEvents() {
	o := organization()
	agent := agentOf(o)
	session := sessionOf(o, agent, client.SessionParams{})
	o.SuspendAgent(ctx, agent.ID(), "leak")

	var stored int64
	for event, err := range o.AllEvents(ctx, stored) {
		if err != nil {
			panic(err)
		}
		fmt.Println(event.Sequence, event.Type, event.SessionID == session.ID())
		stored = event.Sequence
		if event.Type == "agent.suspended" {
			break
		}
	}
	fmt.Println("go on after", stored)
	// Output:
	// 1 agent.created false
	// 2 session.created true
	// 3 agent.suspended false
	// go on after 3
}

// A lease decides charges in the process. At its end what was spent is in the session, and nothing is held.
func ExampleSession_Lease() {
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{MaxActions: 10_000, MaxValue: new(10 * money.USD), MaxLease: time.Minute})

	work := func() error {
		lease, err := session.Lease(ctx, client.LeaseOptions{})
		if err != nil {
			return err
		}
		defer lease.Close(ctx)
		for range 2000 {
			if err := lease.Charge(ctx, client.Charge{ActionType: "llm.call", Value: money.USD / 1000}); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Println(work())
	now, _ := session.Get(ctx)
	fmt.Println(now.ActionCount, "actions,", now.ValueUsed, "used,", now.ValueHeld, "held")
	// Output:
	// <nil>
	// 2000 actions, 2 used, 0 held
}

// An agent that has a key needs no secret. The organization knows its public part only.
func ExampleClient_AgentWith() {
	key, _ := client.GenerateKey(client.EdDSA) // or client.ReadKey("agent.pem")
	o := organization()
	made, _ := o.CreateAgent(ctx, client.AgentParams{Name: "scout", NoSecret: true, JWKS: key.JWKS()})

	agent, err := remit().AgentWith(made.ID, client.AgentOptions{Key: string(key.Text())})
	if err != nil {
		panic(err)
	}
	_, err = sessionOf(o, agent, client.SessionParams{}).Charge(ctx, client.Charge{})
	fmt.Println(made.Secret == "", err)
	// Output: true <nil>
}

// A token that is bound to a key is useless without its key.
func ExampleAgentOptions_dPoP() {
	o := organization()
	made, _ := o.CreateAgent(ctx, client.AgentParams{Name: "scout", DPoPRequired: true})
	key, _ := client.GenerateKey(client.ES256)

	agent, _ := remit().AgentWith(made.ID, client.AgentOptions{Secret: string(made.Secret), DPoP: key})
	_, err := sessionOf(o, agent, client.SessionParams{}).Charge(ctx, client.Charge{})
	fmt.Println("with the key:", err)

	stolen, _ := agent.Token(ctx)
	_, err = remit().Verify(ctx, stolen, "")
	fmt.Println("without it:", errors.Is(err, client.ErrUnauthorized))
	// Output:
	// with the key: <nil>
	// without it: true
}

// An agent gives another one a token for one child session, which dies with the session.
func ExampleAgent_Delegate() {
	o := organization()
	planner, helper := agentOf(o, "sessions:delegate"), agentOf(o)
	child, _ := sessionOf(o, planner, client.SessionParams{}).CreateChild(ctx, client.SessionParams{AgentID: helper.ID(), MaxActions: 1})

	token, err := planner.Delegate(ctx, child.ID, client.DelegateParams{})
	if err != nil {
		panic(err)
	}
	worker, _ := remit().AgentWithToken(string(token.AccessToken), nil)
	left, err := worker.Session(child.ID).Charge(ctx, client.Charge{})
	fmt.Println(left.RemainingActions, err)
	// Output: 0 <nil>
}
