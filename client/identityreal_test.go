package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

// keyed is a new agent without a secret, with the public part of the keys.
func keyed(t *testing.T, o *client.Organization, keys json.RawMessage, scopes ...string) string {
	t.Helper()
	made, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "scout", Scopes: scopes, NoSecret: true, JWKS: keys})
	if err != nil || made.Secret != "" {
		t.Fatalf("%+v, %v", made, err)
	}
	return made.ID
}

func with(t *testing.T, id string, options client.AgentOptions) *client.Agent {
	t.Helper()
	agent, err := remit().AgentWith(id, options)
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

// charges makes one charge to a new session of the agent.
func charges(t *testing.T, o *client.Organization, agent *client.Agent) error {
	t.Helper()
	_, err := sessionOf(o, agent, client.SessionParams{}).Charge(t.Context(), client.Charge{})
	return err
}

func TestTheServiceAcceptsEveryKindOfKey(t *testing.T) {
	t.Parallel()
	o := organization()
	for algorithm, all := range texts(t) {
		keys, err := client.PublicJWKS(all[0])
		if err != nil {
			t.Fatal(err)
		}
		id := keyed(t, o, keys)
		proofs, err := client.ParseKey(all[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := charges(t, o, with(t, id, client.AgentOptions{Key: all[0]})); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		if err := charges(t, o, with(t, id, client.AgentOptions{Key: all[0], DPoP: proofs})); err != nil {
			t.Errorf("proofs by %s: %v", algorithm, err)
		}
	}
}

func TestAReplacedKeyCountsAtOnce(t *testing.T) {
	t.Parallel()
	o, file := organization(), filepath.Join(t.TempDir(), "agent.jwk")
	old, next := generated(t, client.EdDSA), generated(t, client.ES256)
	id := keyed(t, o, old.JWKS())
	write(t, file, string(old.Text()))
	agent := with(t, id, client.AgentOptions{KeyFile: file})
	if err := charges(t, o, agent); err != nil {
		t.Fatal(err)
	}
	if _, err := o.UpdateAgent(t.Context(), id, client.AgentChanges{JWKS: next.JWKS()}); err != nil {
		t.Fatal(err)
	}
	if _, err := with(t, id, client.AgentOptions{KeyFile: file}).Token(t.Context()); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("by the old key: %v", err)
	}
	write(t, file, string(next.Text()))
	if err := charges(t, o, with(t, id, client.AgentOptions{KeyFile: file})); err != nil {
		t.Errorf("by the new key: %v", err)
	}
}

// workloadToken is a token of a platform.
func workloadToken(t *testing.T, platform *client.Key, issuer, subject string, lifetime time.Duration) string {
	t.Helper()
	text, err := client.Sign(platform, map[string]any{
		"iss": issuer, "sub": subject, "aud": startedService().url, "iat": time.Now().Unix(), "exp": time.Now().Add(lifetime).Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAPlatformsTokenBecomesTokensOfTheAgent(t *testing.T) {
	t.Parallel()
	o, platform, file := organization(), generated(t, client.ES256), filepath.Join(t.TempDir(), "token")
	id := keyed(t, o, nil)
	const issuer, subject = "https://kubernetes.example", "system:serviceaccount:shop:agent"
	rules := []client.TrustRule{{AgentID: id, Claims: map[string]string{"sub": subject}}}
	trusted, err := o.CreateTrustedIssuer(t.Context(), client.TrustedIssuerParams{Issuer: issuer, JWKS: platform.JWKS(), Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.CreateTrustedIssuer(t.Context(), client.TrustedIssuerParams{Issuer: issuer, JWKS: platform.JWKS(), Rules: rules}); !errors.Is(err, client.ErrIssuerExists) {
		t.Errorf("twice: %v", err)
	}
	for _, options := range []client.AgentOptions{{AssertionFile: file}, {AssertionFile: file, DPoP: generated(t, client.EdDSA)}} {
		agent := with(t, id, options)
		write(t, file, workloadToken(t, platform, issuer, subject, time.Hour))
		if err := charges(t, o, agent); err != nil {
			t.Error(err)
		}
		if err := agent.Refresh(t.Context()); err != nil { // the same token once more
			t.Error(err)
		}
		for name, text := range map[string]string{
			"another subject": workloadToken(t, platform, issuer, subject+"s", time.Hour), "expired": workloadToken(t, platform, issuer, subject, -time.Hour),
			"another issuer": workloadToken(t, platform, issuer+"s", subject, time.Hour), "another key": workloadToken(t, generated(t, client.ES256), issuer, subject, time.Hour),
		} {
			write(t, file, text)
			if err := agent.Refresh(t.Context()); !errors.Is(err, client.ErrUnauthorized) || strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := o.DeleteTrustedIssuer(t.Context(), trusted.ID); err != nil {
		t.Fatal(err)
	}
	write(t, file, workloadToken(t, platform, issuer, subject, time.Hour))
	if _, err := with(t, id, client.AgentOptions{AssertionFile: file}).Token(t.Context()); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("of an issuer that is trusted no more: %v", err)
	}
}

// A thief has the access token of a bound agent, but not its key.
func TestAStolenBoundTokenIsUseless(t *testing.T) {
	t.Parallel()
	o, own := organization(), generated(t, client.ES256)
	made, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "scout", DPoPRequired: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remit().Agent(made.ID, string(made.Secret)).Token(t.Context()); !errors.Is(err, client.ErrDPoPRequired) {
		t.Errorf("without proofs: %v", err)
	}
	agent := with(t, made.ID, client.AgentOptions{Secret: string(made.Secret), DPoP: own})
	session := sessionOf(o, agent, client.SessionParams{MaxLease: time.Minute})
	for range 2 {
		if _, err := session.Charge(t.Context(), client.Charge{}); err != nil {
			t.Fatal(err)
		}
		if err := agent.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lease, err := session.Lease(t.Context(), client.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lease.Charge(t.Context(), client.Charge{}), lease.Close(t.Context())); err != nil {
		t.Error(err)
	}
	access := token(t, agent)
	info, err := o.Introspect(t.Context(), access)
	if err != nil || info.Thumbprint != own.Thumbprint() {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := remit().Verify(t.Context(), access, ""); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("as a bearer token: %v", err)
	}
	if _, err := remit().AgentWithToken(access, generated(t, client.ES256)); as[*client.UnusableCredential](err) == nil {
		t.Errorf("with another key: %v", err)
	}
	same, err := remit().AgentWithToken(access, own)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := same.Session(session.ID()).Charge(t.Context(), client.Charge{}); err != nil || left.ActionCount != 4 {
		t.Errorf("with the key: %+v, %v", left, err)
	}
}

func TestADelegatedTokenActsOnItsSessionAndDiesWithIt(t *testing.T) {
	t.Parallel()
	for _, dpop := range []*client.Key{nil, generated(t, client.ES256)} {
		o := organization()
		planner, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "planner", Scopes: []string{"read", "sessions:delegate"}})
		if err != nil {
			t.Fatal(err)
		}
		helper := agentOf(o, "read", "pay")
		agent := with(t, planner.ID, client.AgentOptions{Secret: string(planner.Secret), DPoP: dpop})
		parent := sessionOf(o, agent, client.SessionParams{MaxValue: new(2 * money.USD)})
		child, err := parent.CreateChild(t.Context(), client.SessionParams{AgentID: helper.ID(), MaxActions: 3, MaxValue: new(money.USD)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := agent.Delegate(t.Context(), child.ID, client.DelegateParams{})
		if err != nil || got.AgentID != helper.ID() || got.SessionID != child.ID || strings.Join(got.Scopes, " ") != "read" {
			t.Fatalf("%+v, %v", got, err)
		}
		info, err := o.Introspect(t.Context(), string(got.AccessToken))
		if err != nil || info.Subject != helper.ID() || info.SessionID != child.ID || strings.Join(info.Actors, " ") != agent.ID() {
			t.Errorf("%+v, %v", info, err)
		}
		delegated, err := remit().AgentWithToken(string(got.AccessToken), dpop)
		if err != nil {
			t.Fatal(err)
		}
		if left, err := delegated.Session(child.ID).Charge(t.Context(), client.Charge{Value: money.USD / 4}); err != nil || left.ActionCount != 1 {
			t.Errorf("%+v, %v", left, err)
		}
		if _, err := delegated.Session(parent.ID()).Get(t.Context()); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("the parent: %v", err)
		}
		for _, err := range delegated.ListEvents(t.Context(), "") {
			if !errors.Is(err, client.ErrDelegatedToken) {
				t.Errorf("the trail of the agent: %v", err)
			}
		}
		if err := helper.Session(child.ID).End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := delegated.Session(child.ID).Charge(t.Context(), client.Charge{}); !errors.Is(err, client.ErrUnauthorized) {
			t.Errorf("after the session: %v", err)
		}
	}
}

func TestAProtectedResourceLetsInItsOwnTokensAlone(t *testing.T) {
	t.Parallel()
	o, key := organization(), generated(t, client.ES256)
	made, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "scout"})
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	defer server.Close()
	resource := client.ProtectedResource{Resource: server.URL + "/mcp", AuthorizationServers: []string{startedService().url}}
	handler = resource.Handler(remit(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verified, _ := client.VerifiedFrom(r.Context())
		io.WriteString(w, verified.AgentID)
	}))
	for name, test := range map[string]struct {
		options client.AgentOptions
		status  int
	}{
		"for it":         {client.AgentOptions{Resource: []string{resource.Resource}}, 200},
		"for it, proved": {client.AgentOptions{Resource: []string{resource.Resource}, DPoP: key}, 200},
		"for both":       {client.AgentOptions{Resource: []string{startedService().url, resource.Resource}}, 200},
		"for Remit":      {client.AgentOptions{}, 401},
		"for another":    {client.AgentOptions{Resource: []string{server.URL}}, 401},
	} {
		test.options.Secret = string(made.Secret)
		agent := with(t, made.ID, test.options)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, resource.Resource+"/x?q=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Prove(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != test.status || test.status == 200 && string(text) != made.ID {
			t.Errorf("%s: %d %s %s", name, answer.StatusCode, text, answer.Header.Get("WWW-Authenticate"))
		}
		if test.status == 200 && test.options.DPoP != nil { // its proof is good once
			again, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			again.Body.Close()
			if again.StatusCode != 401 || !strings.HasPrefix(again.Header.Get("WWW-Authenticate"), "DPoP error=") {
				t.Errorf("the same proof again: %d %s", again.StatusCode, again.Header.Get("WWW-Authenticate"))
			}
		}
	}
}

func TestAResourceBeyondTheAudiencesIsAnInvalidTarget(t *testing.T) {
	t.Parallel()
	o := organization()
	made, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "scout", Scopes: []string{"read"}, Audiences: &[]string{"urn:a"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range []client.AgentOptions{{Resource: []string{"urn:b"}}, {Resource: []string{"urn:b"}, Scopes: []string{"read"}}, {Resource: []string{"no URI"}, Scopes: []string{"read"}}} {
		options.Secret = string(made.Secret)
		if _, err := with(t, made.ID, options).Token(t.Context()); as[*client.InvalidTarget](err) == nil {
			t.Errorf("%v: %v", options.Resource, err)
		}
	}
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
