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
