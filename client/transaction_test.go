package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

const (
	commitPath   = "/v1/transactions/t1/commit"
	rollbackPath = "/v1/transactions/t1/rollback"
)

func transactionBody(status string) string {
	return `{"id":"t1","agent_id":"a1","session_id":"s1","sequence_number":4,"status":"` + status + `","action_type":"payment",` +
		`"pre_state":{"balance": 7},"value_usd":0,"value_held_usd":2.5,"overage_usd":0,"reversible":true,"metadata":{},` +
		`"expires_at":"2026-11-21T08:24:32.859Z","created_at":"2026-11-21T08:19:32.859Z"}`
}

// settles uses the given reactions for commits and rollbacks, and succeeds otherwise.
func settles(commit, rollback reaction) func(n int, r seen) reaction {
	return issues(func(_ int, r seen) reaction {
		switch r.path {
		case commitPath:
			return commit
		case rollbackPath:
			return rollback
		}
		return reaction{status: 201, body: transactionBody("pending")}
	})
}

func begin(t *testing.T, f *fake) *client.Transaction {
	t.Helper()
	session := newClient(t, f, client.Options{}).Agent("a1", "s").Session("s1")
	tx, err := session.Begin(t.Context(), client.TransactionParams{ActionType: "payment", PreState: map[string]int{"balance": 7}, Value: 2_500_000})
	noError(t, err)
	return tx
}

var (
	committed  = ok(transactionBody("committed"))
	rolledBack = ok(transactionBody("rolled_back"))
)

// A deferred Rollback is sent only if the transaction is certainly pending.
func TestDeferredRollback(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		commit     reaction
		commitIs   error
		rollbackIs error // nil: sent
	}{
		{"after success", committed, nil, client.ErrTransactionDone},
		{"after a commit in doubt", fails(errReset), client.ErrOutcomeUnknown, client.ErrTransactionDone},
		{"after an invalid commit", refusal(400, "invalid_request"), nil, nil},
		{"after a commit that did not happen", refusal(503, "unavailable"), client.ErrUnavailable, nil},
		{"after a commit without a connection", fails(errRefused), client.ErrUnavailable, nil},
		{"after it had expired", refusal(409, "transaction_not_pending"), nil, client.ErrTransactionDone},
	} {
		runInBubble(t, test.name, func(t *testing.T) {
			f := &fake{react: settles(test.commit, rolledBack)}
			tx := begin(t, f)
			err := tx.Commit(t.Context(), client.CommitParams{})
			if test.commitIs != nil && !errors.Is(err, test.commitIs) || (err == nil) != (test.commit.status == 200) {
				t.Errorf("commit: %v", err)
			}
			if err := tx.Rollback(t.Context(), "not finished"); !errors.Is(err, test.rollbackIs) {
				t.Errorf("rollback: %v, want %v", err, test.rollbackIs)
			}
			if sent := f.count(rollbackPath) > 0; sent != (test.rollbackIs == nil) {
				t.Errorf("rollback sent: %t", sent)
			}
		})
	}
}

func TestRollbackIsSentAfterTheContextHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := &fake{react: settles(committed, rolledBack)}
		tx := begin(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tx.Commit(ctx, client.CommitParams{}); !errors.Is(err, context.Canceled) || f.count(commitPath) != 0 {
			t.Errorf("commit: %v", err)
		}
		if err := tx.Rollback(ctx, "cancelled"); err != nil || f.count(rollbackPath) != 1 {
			t.Errorf("rollback: %v, sent %d times", err, f.count(rollbackPath))
		}
		if err := tx.Rollback(ctx, "again"); !errors.Is(err, client.ErrTransactionDone) || f.count(rollbackPath) != 1 {
			t.Errorf("second rollback: %v", err)
		}
		if got := f.to(rollbackPath)[0].body; got != `{"reason":"cancelled"}` || tx.Info().Status != "rolled_back" {
			t.Errorf("sent %s, is %s", got, tx.Info().Status)
		}
	})
}

// A failed rollback may be tried again.
func TestARollbackIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		silent := rolledBack
		silent.delay = time.Hour
		tx := begin(t, &fake{react: settles(committed, silent)})
		for range 2 {
			began := time.Now()
			if err := tx.Rollback(t.Context(), ""); !errors.Is(err, client.ErrOutcomeUnknown) || time.Since(began) > 10*time.Second {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		}
	})
}

// A fraction of a second and a zero budget do not become a default.
func TestShortDurationsDoNotBecomeDefaults(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(ok(`{"id":"s1"}`))}
	organization := newClient(t, f, client.Options{}).Organization("k")
	p := client.SessionParams{AgentID: "a1", MaxValue: new(money.MicroUSD), ExpiresIn: time.Millisecond, Scopes: []string{}}
	must(organization.CreateSession(t.Context(), p))(t)
	want := `{"agent_id":"a1","max_value_usd":0,"scopes":[],"expires_in_seconds":1}`
	if got := f.requests[0].body; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}
