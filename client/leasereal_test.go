package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

// A lease decides charges in the process. At its end what was spent is in the session, and nothing is held.
func ExampleSession_Lease() {
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{MaxActions: 10_000, MaxValue: new(10 * money.USD), MaxLease: time.Minute})

	work := func() error {
		lease, err := session.Lease(ctx, client.LeaseOptions{})
		if err != nil {
			return err
		}
		defer lease.Close(ctx)
		for range 2000 {
			if err := lease.Charge(ctx, client.Charge{ActionType: "llm.call", Value: money.USD / 1000}); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Println(work())
	now, _ := session.Get(ctx)
	fmt.Println(now.ActionCount, "actions,", now.ValueUsed, "used,", now.ValueHeld, "held")
	// Output:
	// <nil>
	// 2000 actions, 2 used, 0 held
}

// The last charge that fits is granted. Then the refusal is the session's.
func ExampleLease_Charge() {
	o := organization()
	session := sessionOf(o, agentOf(o), client.SessionParams{MaxActions: 100, MaxLease: time.Minute})
	lease, err := session.Lease(ctx, client.LeaseOptions{})
	if err != nil {
		panic(err)
	}
	granted := 0
	for ; err == nil; granted++ {
		err = lease.Charge(ctx, client.Charge{})
	}
	var limit *client.LimitReached
	fmt.Println(granted-1, errors.As(err, &limit), limit.Limit, limit.RemainingActions)
	fmt.Println(lease.Close(ctx), errors.Is(lease.Charge(ctx, client.Charge{}), client.ErrLeaseClosed))
	// Output:
	// 100 true max_actions 0
	// <nil> true
}

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

// Several processes with leases use a session up exactly, over a network that loses responses.
func TestLeasesUseASessionUpExactly(t *testing.T) {
	t.Parallel()
	o := organization()
	agent, err := o.CreateAgent(t.Context(), client.AgentParams{Name: "scout"})
	if err != nil {
		t.Fatal(err)
	}
	budget, err := o.CreateSession(t.Context(), client.SessionParams{AgentID: agent.ID, MaxActions: 30_000, MaxValue: new(money.USD), MaxLease: time.Minute})
	if err != nil || budget.MaxLeaseSeconds != 60 {
		t.Fatalf("%+v, %v", budget, err)
	}
	var granted atomic.Int64
	var all sync.WaitGroup
	var leases []*client.Lease
	for range 3 {
		network := &lossy{lost: map[string]int{}, many: 1}
		remit, err := client.New(startedService().url, client.Options{HTTPClient: &http.Client{Transport: network}})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := remit.Agent(agent.ID, string(agent.Secret)).Session(budget.ID).Lease(t.Context(), client.LeaseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
		for range 4 {
			all.Go(func() {
				granted.Add(chargeUntilRefused(t, lease, client.Charge{ActionType: "step", Value: 50}, "max_value_usd"))
			})
		}
	}
	all.Wait()
	for _, lease := range leases {
		closeLease(t, lease)
	}
	now, err := o.GetSession(t.Context(), budget.ID)
	if err != nil || now.ActionCount != 20_000 || now.ValueUsed != money.USD || now.ValueHeld != 0 || granted.Load() != 20_000 {
		t.Errorf("%d granted; %+v, %v", granted.Load(), now, err)
	}
}

// The session decides about leases: whether, for how long, and no more once it has ended.
func TestTheServiceRefusesLeases(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	session := sessionOf(o, agent, client.SessionParams{MaxActions: 100})
	var limit *client.LimitReached
	if _, err := session.Lease(t.Context(), client.LeaseOptions{}); !errors.As(err, &limit) || limit.Limit != "max_lease_seconds" {
		t.Errorf("%v", err)
	}
	changed, err := o.UpdateSession(t.Context(), session.ID(), client.SessionLimits{MaxLease: new(5 * time.Second)})
	if err != nil || changed.MaxLeaseSeconds != 5 {
		t.Fatalf("%+v, %v", changed, err)
	}
	lease, err := session.Lease(t.Context(), client.LeaseOptions{ExpiresIn: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.End(t.Context()); err != nil {
		t.Error(err)
	}
	charge(t, lease, client.Charge{}) // of what it holds
	var ended *client.SessionNotActive
	if _, err := session.Lease(t.Context(), client.LeaseOptions{}); !errors.As(err, &ended) {
		t.Errorf("%v", err)
	}
	closeLease(t, lease)
	if now, err := session.Get(t.Context()); err != nil || now.ActionCount != 1 {
		t.Errorf("%+v, %v", now, err)
	}
}
