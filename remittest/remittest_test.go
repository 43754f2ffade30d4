package remittest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/remittest"
	"remit/test/suite"
)

func TestASessionExpiresWhenTheClockMoves(t *testing.T) {
	t.Parallel()
	remit := remittest.New(t)
	session := remit.Session(t, client.SessionParams{ExpiresIn: time.Hour})
	remit.Advance(time.Hour - time.Millisecond)
	suite.Must(session.Charge(t.Context(), client.Charge{}))(t)
	remit.Advance(time.Millisecond)
	var inactive *client.SessionNotActive
	if _, err := session.Charge(t.Context(), client.Charge{}); !errors.As(err, &inactive) || inactive.SessionStatus != "expired" {
		t.Error(err)
	}
}

func TestAHoldExpiresWhenTheClockMoves(t *testing.T) {
	t.Parallel()
	remit := remittest.New(t)
	session := remit.Session(t, client.SessionParams{MaxValue: new(money.USD)})
	tx := suite.Must(session.Begin(t.Context(), client.TransactionParams{ActionType: "payment", Value: money.USD, ExpiresIn: time.Minute}))(t)
	if _, err := session.Charge(t.Context(), client.Charge{Value: 1}); err == nil {
		t.Error("all is held")
	}
	remit.Advance(time.Minute)
	if u, err := session.Charge(t.Context(), client.Charge{Value: 1}); err != nil || u.ValueHeld != 0 || u.ValueUsed != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	if err := tx.Commit(t.Context(), client.CommitParams{Value: new(money.MicroUSD(5))}); err != nil || !tx.Info().Late {
		t.Errorf("%+v, %v", tx.Info(), err)
	}
}

func TestADayTurnsWhenTheClockMoves(t *testing.T) {
	t.Parallel()
	remit := remittest.New(t)
	session := remit.Session(t, client.SessionParams{ExpiresIn: 72 * time.Hour})
	info := suite.Must(session.Get(t.Context()))(t)
	changes := client.AgentChanges{Limits: client.AgentLimits{MaxValuePerDay: new(money.USD)}}
	suite.Must(remit.Organization.UpdateAgent(t.Context(), info.AgentID, changes))(t)
	charge := func() error {
		_, err := session.Charge(t.Context(), client.Charge{Value: money.USD})
		return err
	}
	var limit *client.AgentLimitReached
	if err := errors.Join(charge(), charge()); !errors.As(err, &limit) {
		t.Fatal(err)
	}
	if midnight := remit.Now().Truncate(24 * time.Hour).Add(24 * time.Hour); !limit.ResetsAt.Equal(midnight) {
		t.Errorf("resets at %s, want %s", limit.ResetsAt, midnight)
	}
	remit.Advance(limit.ResetsAt.Sub(remit.Now()))
	suite.NoError(t, charge())
}

func TestARateRefillsWhenTheClockMoves(t *testing.T) {
	t.Parallel()
	remit := remittest.New(t)
	session := remit.Session(t, client.SessionParams{})
	info := suite.Must(session.Get(t.Context()))(t)
	changes := client.AgentChanges{Limits: client.AgentLimits{MaxActionsPerMinute: new(int64(1))}}
	suite.Must(remit.Organization.UpdateAgent(t.Context(), info.AgentID, changes))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than the refusals say to wait
	defer cancel()
	for range 3 {
		suite.Must(session.Charge(ctx, client.Charge{}))(t)
		if _, err := session.Charge(ctx, client.Charge{}); !errors.Is(err, client.ErrRateLimited) {
			t.Fatalf("two in a minute: %v", err)
		}
		remit.Advance(time.Minute)
	}
}

// Tokens expire by the same clock. The agent renews its own; a kept token is refused.
func TestTokensExpireWhenTheClockMoves(t *testing.T) {
	t.Parallel()
	remit := remittest.New(t)
	agent := remit.Agent(t, client.AgentParams{Scopes: []string{"search"}})
	kept := suite.Must(agent.Token(t.Context()))(t)
	for range 3 {
		verified, err := remit.Client.Verify(t.Context(), kept, "")
		if err != nil || verified.AgentID != agent.ID() {
			t.Fatalf("%+v, %v", verified, err)
		}
		remit.Advance(10 * time.Minute)
	}
	for range 5 {
		remit.Advance(24 * time.Hour) // past the life of a refresh token in the end
		if _, err := remit.Client.Verify(t.Context(), kept, ""); !errors.Is(err, client.ErrUnauthorized) {
			t.Errorf("an expired token: %v", err)
		}
		for _, err := range agent.Sessions(t.Context(), client.SessionFilter{}) {
			suite.NoError(t, err)
		}
	}
}

func TestServicesAreApart(t *testing.T) {
	t.Parallel()
	one, other := remittest.New(t), remittest.New(t)
	one.Advance(48 * time.Hour)
	if !other.Now().Before(one.Now().Add(-47 * time.Hour)) {
		t.Error("the clocks are one")
	}
	session := one.Session(t, client.SessionParams{})
	if _, err := other.Organization.GetSession(t.Context(), session.ID()); !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("%v", err)
	}
}

func TestTheServiceIsReadyInMilliseconds(t *testing.T) {
	fastest := time.Hour
	for range 10 {
		began := time.Now()
		t.Run("", func(t *testing.T) { remittest.New(t) })
		fastest = min(fastest, time.Since(began))
	}
	if fastest > 500*time.Millisecond { // 30 ms on an idle machine, with its end
		t.Errorf("the fastest of ten took %s", fastest)
	}
}
