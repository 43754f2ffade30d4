package client_test

import (
	"testing"

	"remit/client"
	"remit/money"
)

// A suspended agent begins nothing, and settles what it has begun.
func TestASuspendedAgentSettlesAndGoesOnWhenResumed(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	session := sessionOf(o, agent, client.SessionParams{MaxValue: new(money.USD)})
	tx, err := session.Begin(t.Context(), client.TransactionParams{ActionType: "pay", Value: 1})
	if err != nil {
		t.Fatal(err)
	}
	first, err := o.SuspendAgent(t.Context(), agent.ID(), "leak")
	if err != nil || first.SuspendedAt.IsZero() || first.SuspensionReason != "leak" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := o.SuspendAgent(t.Context(), agent.ID(), "another"); err != nil || again.SuspensionReason != "leak" {
		t.Errorf("%+v, %v", again, err)
	}
	_, err = session.Charge(t.Context(), client.Charge{})
	if refused, _ := as[*client.AgentSuspended](err).(*client.AgentSuspended); refused == nil || !refused.SuspendedAt.Equal(first.SuspendedAt) {
		t.Errorf("a charge: %v", err)
	}
	if err := tx.Commit(t.Context(), client.CommitParams{}); err != nil {
		t.Error(err)
	}
	if resumed, err := o.ResumeAgent(t.Context(), agent.ID(), ""); err != nil || !resumed.SuspendedAt.IsZero() {
		t.Errorf("%+v, %v", resumed, err)
	}
	if _, err := session.Charge(t.Context(), client.Charge{}); err != nil {
		t.Error(err)
	}
}

func TestSuspendedSessionsAndAllAgentsGoOnWhenResumed(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	agentOf(o)
	session := sessionOf(o, agent, client.SessionParams{})
	if info, err := o.SuspendSession(t.Context(), session.ID(), "odd"); err != nil || info.SuspendedAt.IsZero() || info.SuspensionReason != "odd" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := session.Charge(t.Context(), client.Charge{}); as[*client.SessionSuspended](err) == nil {
		t.Error(err)
	}
	if info, err := o.ResumeSession(t.Context(), session.ID(), ""); err != nil || !info.SuspendedAt.IsZero() {
		t.Errorf("%+v, %v", info, err)
	}
	if n, err := o.SuspendAllAgents(t.Context(), "stop"); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := session.Charge(t.Context(), client.Charge{}); as[*client.AgentSuspended](err) == nil {
		t.Error(err)
	}
	if n, err := o.ResumeAllAgents(t.Context()); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := session.Charge(t.Context(), client.Charge{}); err != nil {
		t.Error(err)
	}
}

// A scope that an agent loses is refused at once.
func TestAnAgentLosesScopesAtOnce(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o, "read", "pay")
	session := sessionOf(o, agent, client.SessionParams{})
	if _, err := session.Charge(t.Context(), client.Charge{Scope: "pay"}); err != nil {
		t.Fatal(err)
	}
	changed, err := o.UpdateAgent(t.Context(), agent.ID(), client.AgentChanges{Name: "spy", Description: new("looks"), Scopes: &[]string{"read"}})
	if err != nil || changed.Name != "spy" || changed.Description != "looks" || len(changed.Scopes) != 1 {
		t.Errorf("%+v, %v", changed, err)
	}
	if _, err := session.Charge(t.Context(), client.Charge{Scope: "pay"}); as[*client.InsufficientScope](err) == nil {
		t.Error(err)
	}
}
