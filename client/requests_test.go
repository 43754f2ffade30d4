package client_test

import (
	"errors"
	"testing"

	"remit/client"
	"remit/money"
)

// Without a key a top-up whose response is lost stays in doubt, because a retry would count twice.
func TestATopUpWithoutAKeyIsNotRetried(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(fails(errReset))}
	organization := newClient(t, f, client.Options{NoIdempotencyKeys: true}).Organization("k")
	_, err := organization.UpdateSession(t.Context(), "s1", client.SessionLimits{AddValue: money.USD})
	if !errors.Is(err, client.ErrOutcomeUnknown) || len(f.requests) != 1 {
		t.Errorf("%v, sent %d times", err, len(f.requests))
	}
}

func TestUpdateSetsTheInfo(t *testing.T) {
	t.Parallel()
	f := &fake{react: issues(func(n int, r seen) reaction {
		if r.method == "PATCH" {
			return refusal(403, "session_limit_reached", limitMembers)
		}
		return ok(transactionBody("pending"))
	})}
	tx := begin(t, f)
	var limit *client.LimitReached
	if err := tx.Update(t.Context(), client.TransactionChanges{Value: new(9 * money.USD)}); !errors.As(err, &limit) || limit.Usage != usage {
		t.Error(err)
	}
	if err := tx.Commit(t.Context(), client.CommitParams{}); err != nil {
		t.Errorf("it cannot be committed after a refused change: %v", err)
	}
}
