package client_test

import (
	"context"
	"errors"
	"fmt"

	"remit/client"
)

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
	child, _ := sessionOf(o, planner, client.SessionParams{}).CreateChild(context.Background(), client.SessionParams{AgentID: helper.ID(), MaxActions: 1})

	token, err := planner.Delegate(ctx, child.ID, client.DelegateParams{})
	if err != nil {
		panic(err)
	}
	worker, _ := remit().AgentWithToken(string(token.AccessToken), nil)
	left, err := worker.Session(child.ID).Charge(ctx, client.Charge{})
	fmt.Println(left.RemainingActions, err)
	// Output: 0 <nil>
}
