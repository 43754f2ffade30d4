package main

import (
	"context"
	"fmt"

	"remit/client"
)

func identity(ctx context.Context, remit *client.Client, org *client.Organization, agentID string) error {
	// sample: createTrustedIssuer
	// Jobs of this repository's main branch become the agent, without a secret: client.AgentOptions{AssertionFile: …}
	trusted, err := org.CreateTrustedIssuer(ctx, client.TrustedIssuerParams{
		Issuer: "https://token.actions.githubusercontent.com", JWKSURI: "https://token.actions.githubusercontent.com/.well-known/jwks",
		Rules: []client.TrustRule{{AgentID: agentID, Claims: map[string]string{"sub": "repo:acme/shop:ref:refs/heads/main"}}},
	})
	if err != nil {
		return err
	}
	// end

	// sample: listTrustedIssuers
	all, err := org.TrustedIssuers(ctx)
	if err != nil {
		return err
	}
	fmt.Println(len(all), "trusted issuers")
	// end

	// sample: getTrustedIssuer
	shown, err := org.GetTrustedIssuer(ctx, trusted.ID)
	if err != nil {
		return err
	}
	fmt.Println(shown.Issuer, shown.Rules)
	// end

	// sample: changeTrustedIssuer
	rules := []client.TrustRule{{AgentID: agentID, Claims: map[string]string{"sub": "repo:acme/shop:*", "environment": "production"}}}
	changed, err := org.UpdateTrustedIssuer(ctx, trusted.ID, client.TrustedIssuerChanges{Rules: rules})
	if err != nil {
		return err
	}
	fmt.Println(changed.Rules)
	// end

	// sample: deleteTrustedIssuer
	if err := org.DeleteTrustedIssuer(ctx, trusted.ID); err != nil {
		return err
	}
	// end
	return keys(ctx, remit, org)
}

func keys(ctx context.Context, remit *client.Client, org *client.Organization) error {
	// sample: oauthToken
	// An agent with a private key instead of a secret. Its tokens are for one server, and bound to a second key (DPoP).
	key, err := client.GenerateKey(client.EdDSA) // client.ReadKey reads one from a file
	if err != nil {
		return err
	}
	made, err := org.CreateAgent(ctx, client.AgentParams{Name: "deployer", NoSecret: true, JWKS: key.JWKS()})
	if err != nil {
		return err
	}
	proofs, err := client.GenerateKey(client.ES256)
	if err != nil {
		return err
	}
	deployer, err := remit.AgentWith(made.ID, client.AgentOptions{
		Key: string(key.Text()), Resource: []string{"https://deploy.example.com/"}, DPoP: proofs,
	})
	if err != nil {
		return err
	}
	token, err := deployer.Token(ctx)
	if err != nil {
		return err
	}
	// end
	return verified(ctx, org, token)
}

// verified checks that the token is what the sample says.
func verified(ctx context.Context, org *client.Organization, token string) error {
	about, err := org.Introspect(ctx, token)
	if err != nil || about.Thumbprint == "" || len(about.Audience) != 1 {
		return fmt.Errorf("the token is for %q, bound to %q: %w", about.Audience, about.Thumbprint, err)
	}
	return nil
}
