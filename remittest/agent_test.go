package remittest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/remittest"
)

// research is an agent under test: it searches until it has found enough, or until its budget is spent.
func research(ctx context.Context, session *client.Session, wanted int) (found int, err error) {
	for found < wanted {
		_, err := session.Charge(ctx, client.Charge{ActionType: "search", Value: 5 * money.USD / 1000})
		var limit *client.LimitReached
		if errors.As(err, &limit) {
			return found, nil // what it has found is its answer
		}
		if err != nil {
			return found, err
		}
		found++ // here it would search
	}
	return found, nil
}

func TestTheAgentAnswersWithWhatItsBudgetAllows(t *testing.T) {
	t.Parallel()
	remit := remittest.New(t)
	session := remit.Session(t, client.SessionParams{MaxValue: new(2 * money.USD / 100)})

	found, err := research(t.Context(), session, 10)
	if err != nil || found != 4 {
		t.Errorf("it found %d, want 4: %v", found, err)
	}
	info, err := session.Get(t.Context())
	if err != nil || info.ValueUsed != 2*money.USD/100 {
		t.Errorf("it used %s USD: %v", info.ValueUsed, err)
	}
}

func TestTheAgentFailsWhenItsSessionHasExpired(t *testing.T) {
	t.Parallel()
	remit := remittest.New(t)
	session := remit.Session(t, client.SessionParams{ExpiresIn: time.Hour})

	remit.Advance(time.Hour)
	_, err := research(t.Context(), session, 10)
	var inactive *client.SessionNotActive
	if !errors.As(err, &inactive) {
		t.Errorf("want that the session has expired: %v", err)
	}
}
