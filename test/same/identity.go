package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"

	"remit/client"
	"remit/money"
)

const tools = "https://tools.example/mcp" // a resource

// identity makes the calls about keys, audiences and delegation to the service.
func identity(done *steps, remit *client.Client) {
	made := get(remit.CreateOrganization(ctx, client.OrganizationParams{Name: "acme"}))
	o := remit.Organization(string(made.APIKey))
	own, proofs := get(client.GenerateKey(client.EdDSA)), get(client.GenerateKey(client.ES256))
	done.add("make a key", "%d %t", len(own.Thumbprint()), own.Thumbprint() != proofs.Thumbprint())
	set := get(client.PublicJWKS(string(own.Text())))
	done.add("the public part of a key", "%t", string(set) == string(own.JWKS()))
	scout := get(o.CreateAgent(ctx, client.AgentParams{
		Name: "scout", Scopes: []string{"read", "pay", "sessions:delegate"}, NoSecret: true, JWKS: set, Audiences: &[]string{tools},
	}))
	done.add("register an agent's keys", "%t %t", scout.Secret == "", *scout.HasSecret)
	done.add("limit an agent's audiences", "%q", *scout.Audiences)

	key := string(own.Text())
	agent := get(remit.AgentWith(scout.ID, client.AgentOptions{Key: key}))
	done.add("an agent by other credentials", "%t", agent.ID() == scout.ID)
	session := agent.Session(get(o.CreateSession(ctx, client.SessionParams{AgentID: scout.ID, MaxActions: 10, MaxValue: new(5 * money.USD)})).ID)
	done.add("an agent by its private key", "%d", get(session.Charge(ctx, client.Charge{})).ActionCount)
	identityTokens(done, remit, o, scout.ID, key, proofs)
	identityDelegation(done, remit, o, session, agent)
	identitySuspended(done, remit, o, session, agent)
	identityProofs(done, remit, o, scout.ID, key, proofs, session)
	trustedIssuers(done, o, scout.ID, own)
}

func identityTokens(done *steps, remit *client.Client, o *client.Organization, id, key string, proofs *client.Key) {
	narrow := get(remit.AgentWith(id, client.AgentOptions{Key: key, Resource: []string{tools}, Scopes: []string{"read"}}))
	access := get(narrow.Token(ctx))
	verified := get(remit.VerifyWith(ctx, access, client.VerifyOptions{Audience: tools}))
	done.add("verify for an audience", "%t", verified.AgentID == id)
	done.add("tokens with fewer scopes", "%q", verified.Scopes)
	wrong := second(remit.Verify(ctx, access, ""))
	done.add("tokens for resources", "%t %q", errors.Is(wrong, client.ErrUnauthorized), get(o.Introspect(ctx, access)).Audience)
	elsewhere := get(remit.AgentWith(id, client.AgentOptions{Key: key, Resource: []string{"https://elsewhere.example/"}}))
	done.add("a resource is not allowed", "%s", as[*client.InvalidTarget](second(elsewhere.Token(ctx))).Code)
	pair := get(remit.ExchangeWith(ctx, id, client.AgentOptions{Key: key, DPoP: proofs}))
	done.add("exchange another credential", "%s %d %t", pair.TokenType, pair.ExpiresIn, pair.RefreshToken != "")
	freed := get(o.UpdateAgent(ctx, id, client.AgentChanges{Remove: []string{"audiences"}}))
	done.add("remove a field of an agent", "%t", freed.Audiences == nil)
}

func identityDelegation(done *steps, remit *client.Client, o *client.Organization, parent *client.Session, agent *client.Agent) {
	helper := get(o.CreateAgent(ctx, client.AgentParams{Name: "helper", Scopes: []string{"read"}}))
	child := get(parent.CreateChild(ctx, client.SessionParams{AgentID: helper.ID, MaxActions: 2, MaxValue: new(money.USD)}))
	token := get(agent.Delegate(ctx, child.ID, client.DelegateParams{Scopes: []string{"read"}}))
	done.add("delegate to a child session", "%t %t %s %q", token.AgentID == helper.ID, token.SessionID == child.ID, token.TokenType, token.Scopes)
	alone := get(remit.AgentWithToken(string(token.AccessToken), nil))
	done.add("an agent by a token alone", "%t %d", alone.ID() == helper.ID, get(alone.Session(child.ID).Charge(ctx, client.Charge{})).ActionCount)
	for _, err := range alone.ListEvents(ctx, "") {
		done.add("a delegated token may not", "%t", errors.Is(err, client.ErrDelegatedToken))
	}
}

func identityProofs(done *steps, remit *client.Client, o *client.Organization, id, key string, proofs *client.Key, session *client.Session) {
	strict := get(o.UpdateAgent(ctx, id, client.AgentChanges{DPoPRequired: new(true)}))
	done.add("demand proofs of an agent", "%t", strict.DPoPRequired)
	bare := get(remit.AgentWith(id, client.AgentOptions{Key: key}))
	done.add("an agent must prove its key", "%t", errors.Is(second(bare.Token(ctx)), client.ErrDPoPRequired))
	bound := get(remit.AgentWith(id, client.AgentOptions{Key: key, DPoP: proofs}))
	charged := get(bound.Session(session.ID()).Charge(ctx, client.Charge{}))
	info := get(o.Introspect(ctx, get(bound.Token(ctx))))
	done.add("tokens bound to a key", "%d %t %s", charged.ActionCount, info.Thumbprint == proofs.Thumbprint(), info.TokenType)
	must(bound.Refresh(ctx))
	done.add("tokens bound to a key", "%d", get(bound.Session(session.ID()).Charge(ctx, client.Charge{})).ActionCount)
}

// identitySuspended asks the token endpoint for what a suspended agent does not get.
func identitySuspended(done *steps, remit *client.Client, o *client.Organization, parent *client.Session, agent *client.Agent) {
	key := get(client.GenerateKey(client.EdDSA))
	made := get(o.CreateAgent(ctx, client.AgentParams{Name: "courier", NoSecret: true, JWKS: key.JWKS()}))
	done.add("suspend an agent", "%t", get(o.SuspendAgent(ctx, made.ID, "leak")).ID == made.ID)
	courier := get(remit.AgentWith(made.ID, client.AgentOptions{Key: string(key.Text())}))
	stopped := as[*client.AgentSuspended](second(courier.Token(ctx)))
	done.add("the agent is suspended", "%t %s", !stopped.SuspendedAt.IsZero(), stopped.Code)
	missing := second(agent.Delegate(ctx, parent.ID(), client.DelegateParams{}))
	done.add("delegate to a child session", "%t", errors.Is(missing, client.ErrNotFound))
}

func trustedIssuers(done *steps, o *client.Organization, agent string, key *client.Key) {
	rules := []client.TrustRule{{AgentID: agent, Claims: map[string]string{"sub": "repo:acme/agent:*", "environment": "production"}}}
	made := get(o.CreateTrustedIssuer(ctx, client.TrustedIssuerParams{Issuer: "https://ci.example", JWKS: key.JWKS(), Rules: rules, Description: "CI"}))
	done.add("create a trusted issuer", "%s %s %s", made.Issuer, made.Rules[0].Claims["sub"], made.Description)
	again := second(o.CreateTrustedIssuer(ctx, client.TrustedIssuerParams{Issuer: "https://ci.example", JWKS: key.JWKS(), Rules: rules}))
	done.add("an issuer is trusted already", "%t", errors.Is(again, client.ErrIssuerExists))
	done.add("list trusted issuers", "%d", len(get(o.TrustedIssuers(ctx))))
	done.add("read a trusted issuer", "%t", get(o.GetTrustedIssuer(ctx, made.ID)).Rules[0].AgentID == agent)
	changed := get(o.UpdateTrustedIssuer(ctx, made.ID, client.TrustedIssuerChanges{Description: new("builds")}))
	done.add("change a trusted issuer", "%s %d", changed.Description, len(changed.Rules))
	must(o.DeleteTrustedIssuer(ctx, made.ID))
	done.add("delete a trusted issuer", "%t", errors.Is(second(o.GetTrustedIssuer(ctx, made.ID)), client.ErrNotFound))
}

// contractIdentity makes those calls whose answers a test cannot bring about.
func contractIdentity(done *steps, remit *client.Client) {
	dir := get(os.MkdirTemp("", "same-"))
	defer os.RemoveAll(dir)
	keyFile, tokenFile := filepath.Join(dir, "key"), filepath.Join(dir, "token")
	proofs := get(client.GenerateKey(client.ES256))
	must(os.WriteFile(keyFile, []byte(get(client.GenerateKey(client.ES256)).Text()), 0o600))
	must(os.WriteFile(tokenFile, []byte("e30.e30.c2ln\n"), 0o600))

	byFile := get(remit.AgentWith("a1", client.AgentOptions{KeyFile: keyFile}))
	done.add("an agent by its private key", "%s", get(byFile.Token(ctx)))
	read := func(context.Context) (string, error) { text, err := os.ReadFile(tokenFile); return string(text), err }
	workload := get(remit.AgentWith("a1", client.AgentOptions{Assertion: read, Resource: []string{tools, "urn:b"}, Scopes: []string{"read", "pay"}}))
	done.add("an agent by its workload's token", "%s", get(workload.Token(ctx)))
	absent := get(remit.AgentWith("a1", client.AgentOptions{AssertionFile: filepath.Join(dir, "absent")}))
	unusable := as[*client.UnusableCredential](second(absent.Token(ctx)))
	done.add("a key or token file is unusable", "%t", unusable.Source == filepath.Join(dir, "absent"))

	nonce := get(remit.AgentWith("nonce", client.AgentOptions{Secret: "rms_1", DPoP: proofs}))
	done.add("tokens bound to a key", "%s", get(nonce.Token(ctx)))
	refused := get(remit.AgentWith("skewed", client.AgentOptions{Secret: "rms_1", DPoP: proofs}))
	proof := as[*client.InvalidProof](second(refused.Token(ctx)))
	done.add("a proof is refused", "%s %t", proof.Code, proof.ClockSkew.Hours() > 24)

	request := get(http.NewRequest(http.MethodPut, tools+"?q=1", nil)) //nolint:noctx // it is not sent
	must(nonce.Prove(ctx, request))
	done.add("prove a request elsewhere", "%s %t", request.Header.Get("Authorization"), request.Header.Get("DPoP") != "")
	verified := get(remit.VerifyWith(ctx, "t", client.VerifyOptions{
		Scope: "read", Audience: tools, Proof: "p", Method: request.Method, URL: request.URL.String(),
	}))
	done.add("verify a proof", "%s %s %q %s", verified.AgentID, verified.ActorID, verified.Scopes, verified.Thumbprint)

	resource := client.ProtectedResource{Resource: tools, AuthorizationServers: []string{"https://remit.example"}, Scopes: []string{"read"}}
	var document map[string]any
	must(json.Unmarshal(resource.Metadata(), &document))
	done.add("describe a protected resource", "%d %s %s", len(document), document["resource"], resource.MetadataURL())
	done.add("describe a protected resource", "%s", resource.Challenge(nil))
	done.add("describe a protected resource", "%s", resource.Challenge(second(remit.Verify(ctx, "t", "pay"))))

	o := remit.Organization("rmk_1")
	for _, token := range []string{"delegated", "plain", "nonsense"} {
		of := get(o.Introspect(ctx, token))
		done.add("introspect a token", "%t %q %s. %s. %q", of.Active, of.Audience, of.Thumbprint, of.SessionID, of.Actors)
	}
	made := get(o.CreateAgent(ctx, client.AgentParams{Name: "keys", JWKSURI: "https://keys.example/jwks"}))
	done.add("register an agent's keys", "%s %t", made.JWKSURI, made.DPoPRequired)
	issuer := get(o.CreateTrustedIssuer(ctx, client.TrustedIssuerParams{
		Issuer: "https://ci.example", JWKSURI: "https://ci.example/jwks", Rules: []client.TrustRule{{AgentID: "a1", Claims: map[string]string{"sub": "x"}}},
	}))
	done.add("create a trusted issuer", "%s %d", issuer.JWKSURI, issuer.CreatedAt.Unix())
	rules := []client.TrustRule{{AgentID: "a1", Claims: map[string]string{"sub": "x"}}, {AgentID: "a2", Claims: map[string]string{"aud": "y"}}}
	changed := get(o.UpdateTrustedIssuer(ctx, "i1", client.TrustedIssuerChanges{JWKSURI: "https://ci.example/new", Rules: rules}))
	done.add("change a trusted issuer", "%s", changed.JWKSURI)
	for _, changes := range []client.AgentChanges{
		{JWKSURI: "https://keys.example/new", Audiences: &[]string{}}, {Remove: []string{"jwks", "jwks_uri"}}, {DPoPRequired: new(false)},
	} {
		done.add("remove a field of an agent", "%t", get(o.UpdateAgent(ctx, "a1", changes)).ID == "a1")
	}
}
