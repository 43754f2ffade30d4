package client_test

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"remit/client"
	"remit/money"
)

// lossy is a network that loses the first response to chosen requests, after the service has handled them.
type lossy struct {
	mu   sync.Mutex
	lost map[string]int // answers lost, by method and path
	many int            // how many in a row
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if place := r.Method + " " + r.URL.Path; l.lost[place] < l.many {
		l.lost[place]++
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		return nil, errReset
	}
	return response, nil
}

// Whichever response is lost, each step takes effect once and its call succeeds.
func TestLostResponsesTakeEffectOnce(t *testing.T) {
	t.Parallel()
	network := &lossy{lost: map[string]int{}, many: 2}
	remit, err := client.New(startedService().url, client.Options{HTTPClient: &http.Client{Transport: network}})
	if err != nil {
		t.Fatal(err)
	}
	network.many = 0
	made, err := remit.CreateOrganization(t.Context(), client.OrganizationParams{Name: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	o := remit.Organization(string(made.APIKey))
	scout, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "scout", Scopes: []string{"admin"}})
	if err != nil {
		t.Fatal(err)
	}
	network.many = 2

	agent := remit.Agent(scout.ID, string(scout.Secret))
	budget, err := o.CreateSession(t.Context(), client.SessionParams{AgentID: scout.ID, MaxValue: new(100 * money.USD)})
	if err != nil {
		t.Fatal(err)
	}
	session := agent.Session(budget.ID)
	steps(t, session, agent)
	if sessions := collect(t, o.Sessions(t.Context(), client.SessionFilter{}), sessionID); len(sessions) != 1 {
		t.Errorf("%d sessions", len(sessions))
	}
	now, err := session.Get(t.Context())
	// 1 + 2 by actions, 3 + 4 by transactions of which the second is rolled back.
	if err != nil || now.ActionCount != 4 || now.ValueUsed != 6*money.USD || now.ValueHeld != 0 {
		t.Errorf("%+v, %v", now, err)
	}
	if err := session.End(t.Context()); err != nil {
		t.Error(err)
	}
}

// steps performs every step of an agent once.
func steps(t *testing.T, session *client.Session, agent *client.Agent) {
	t.Helper()
	if _, err := session.Charge(t.Context(), client.Charge{Value: money.USD}); err != nil {
		t.Error(err)
	}
	batch := []client.SessionCharge{{SessionID: session.ID(), Charge: client.Charge{Value: 2 * money.USD}}}
	if results, err := agent.ChargeMany(t.Context(), batch, client.BatchOptions{}); err != nil || results[0].Err != nil {
		t.Error(results, err)
	}
	for i, settle := range []func(*client.Transaction) error{
		func(tx *client.Transaction) error { return tx.Commit(t.Context(), client.CommitParams{}) },
		func(tx *client.Transaction) error { return tx.Rollback(t.Context(), "never mind") },
	} {
		tx, err := session.Begin(t.Context(), client.TransactionParams{
			ActionType: "payment", PreState: struct{}{}, Value: money.MicroUSD(3+i) * money.USD,
		})
		if err != nil {
			t.Fatal(err)
		}
		if number := tx.Info().SequenceNumber; number != int64(i+1) {
			t.Errorf("transaction %d has number %d", i+1, number)
		}
		if err := settle(tx); err != nil {
			t.Error(err)
		}
	}
	if err := agent.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
}
