package client_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

// These tests check with the service what the fakes of the other tests assume.

func TestAnAgentsWholeLife(t *testing.T) {
	t.Parallel()
	remit := remit()
	acme, err := remit.CreateOrganization(t.Context(), client.OrganizationParams{Name: "acme", Metadata: map[string]int{"tier": 1}})
	if err != nil || acme.APIKey == "" || string(acme.Metadata) != `{"tier":1}` || time.Since(acme.CreatedAt).Abs() > time.Minute {
		t.Fatalf("%+v, %v", acme, err)
	}
	o := remit.Organization(string(acme.APIKey))
	if info, err := o.Info(t.Context(), acme.ID); err != nil || info.Name != "acme" || info.APIKey != "" {
		t.Errorf("%+v, %v", info, err)
	}
	made, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "scout", Scopes: []string{"read", "pay"}, Description: "looks"})
	if err != nil || made.Secret == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	read, err := o.GetAgent(t.Context(), made.ID)
	if err != nil || read.Status != "active" || read.Description != "looks" || !slices.Equal(read.Scopes, made.Scopes) || read.Secret != "" {
		t.Errorf("%+v, %v", read, err)
	}
	rotated, err := o.RotateAgentSecret(t.Context(), made.ID, client.RotateSecretParams{Grace: time.Minute})
	if err != nil || rotated.Secret == "" || time.Until(rotated.PreviousExpiresAt) <= 0 {
		t.Errorf("%+v, %v", rotated, err)
	}
	for _, secret := range []client.Credential{made.Secret, rotated.Secret} {
		if _, err := remit.Agent(made.ID, string(secret)).Token(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(o.RevokeAgent(t.Context(), made.ID), o.RevokeAgent(t.Context(), made.ID)); err != nil {
		t.Error(err)
	}
	if read, err := o.GetAgent(t.Context(), made.ID); err != nil || read.Status != "revoked" || read.RevokedAt.IsZero() {
		t.Errorf("%+v, %v", read, err)
	}
	key, err := o.RotateKey(t.Context(), acme.ID, client.RotateKeyParams{Grace: new(time.Duration)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Info(t.Context(), acme.ID); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("with the old key: %v", err)
	}
	if _, err := remit.Organization(string(key.APIKey)).Info(t.Context(), acme.ID); err != nil {
		t.Error(err)
	}
}

func TestASessionIsReadAsItWasMade(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o, "read", "pay")
	session := sessionOf(o, agent, client.SessionParams{
		MaxActions: 7, MaxValue: new(12_300_001 * money.MicroUSD(1)), ExpiresIn: time.Hour, Scopes: []string{"read"},
		Metadata: map[string]string{"for": "a<b>&c"},
	})
	info, err := session.Get(t.Context())
	if err != nil || info.ID != session.ID() || info.AgentID != agent.ID() || info.Status != "active" || info.MaxActions != 7 ||
		info.MaxValue != 12_300_001 || !slices.Equal(info.Scopes, []string{"read"}) || string(info.Metadata) != `{"for":"a<b>&c"}` {
		t.Errorf("%+v, %v", info, err)
	}
	if life := info.ExpiresAt.Sub(info.CreatedAt); life != time.Hour {
		t.Errorf("lives %s", life)
	}
	if _, err := session.Charge(t.Context(), client.Charge{Scope: "pay"}); as[*client.InsufficientScope](err) == nil {
		t.Errorf("with a scope that the session lacks: %v", err)
	}
	if _, err := o.CreateSession(t.Context(), client.SessionParams{AgentID: agent.ID(), MaxActions: -1}); as[*client.Problem](err) == nil {
		t.Errorf("-1 actions: %v", err)
	}
	none := sessionOf(o, agent, client.SessionParams{MaxValue: new(money.MicroUSD)})
	if _, err := none.Charge(t.Context(), client.Charge{Value: 1}); as[*client.LimitReached](err) == nil {
		t.Errorf("a budget of zero: %v", err)
	}
}

func TestListsOfTheServiceHavePages(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	var made []string
	for range 105 { // a page has 100
		made = append(made, sessionOf(o, agent, client.SessionParams{}).ID())
	}
	slices.Reverse(made)
	for name, sessions := range map[string][]string{
		"organization": collect(t, o.Sessions(t.Context(), client.SessionFilter{AgentID: agent.ID(), Status: "active"}), sessionID),
		"agent":        collect(t, agent.Sessions(t.Context(), client.SessionFilter{}), sessionID),
	} {
		if !slices.Equal(sessions, made) {
			t.Errorf("%s: %d sessions, want %d, newest first", name, len(sessions), len(made))
		}
	}
	agents := collect(t, o.Agents(t.Context(), client.AgentFilter{Status: "active"}), func(a client.AgentInfo) string { return a.ID })
	if !slices.Equal(agents, []string{agent.ID()}) {
		t.Errorf("agents %q", agents)
	}
}

func sessionID(s client.SessionSummary) string { return s.ID }

func collect[T any](t *testing.T, list func(func(T, error) bool), id func(T) string) (ids []string) {
	t.Helper()
	for element, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id(element))
	}
	return ids
}

// The token that a refresh replaces stays valid, and the chain of refreshes holds.
func TestRefreshesChain(t *testing.T) {
	t.Parallel()
	agent := agentOf(organization())
	seen := map[string]bool{}
	for range 4 {
		access, err := agent.Token(t.Context())
		if err != nil || seen[access] {
			t.Fatalf("again the same, or %v", err)
		}
		seen[access] = true
		if err := agent.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The charges of concurrent goroutines add up exactly.
func TestChargesOfManyGoroutinesAddUp(t *testing.T) {
	t.Parallel()
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{MaxActions: 150, MaxValue: new(money.Max)})
	var group sync.WaitGroup
	var mu sync.Mutex
	var done, refused int64
	for range 20 {
		group.Go(func() {
			for range 10 {
				_, err := session.Charge(t.Context(), client.Charge{Value: 333_333})
				mu.Lock()
				switch {
				case err == nil:
					done++
				case as[*client.LimitReached](err) != nil:
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	info, err := session.Get(t.Context())
	if err != nil || done != 150 || refused != 50 || info.ActionCount != 150 || info.ValueUsed != 150*333_333 {
		t.Errorf("%d done, %d refused, %+v, %v", done, refused, info, err)
	}
}
