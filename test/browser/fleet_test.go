//go:build long

package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/internal/token"
	"remit/money"
	"remit/redisstore"
	"remit/test/serviceproc"

	"github.com/google/uuid"
)

// The fleet that every page must stay quick with.
const (
	fleetAgents   = 10_000
	fleetSessions = 100_000
)

// fleet is an organization of that size, behind a service with a Redis of its own.
type fleet struct {
	service  *serviceproc.Service
	store    *redisstore.Store
	apiKey   string
	key      redisstore.APIKey
	agents   []uuid.UUID
	sessions []uuid.UUID
	redis    *redisproc.Server
	client   *http.Client // of changes
	changes  atomic.Int64 // acknowledged
	fillTime time.Duration
}

// newFleet creates the organization through the store, which sends the calls in pipelines.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	redis := must(redisproc.Start(t.Context(), redisproc.Config{}))(t)
	t.Cleanup(func() { _ = redis.Stop() })
	f := &fleet{
		agents: make([]uuid.UUID, fleetAgents), sessions: make([]uuid.UUID, fleetSessions), redis: redis,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: time.Minute},
	}
	quotas := map[string]int64{"agents": 0, "open_sessions": 0, "bytes": 0}
	f.store = must(redisstore.Open(redisstore.Config{URL: redis.URL(), Quotas: quotas, KeepsFeeds: true}))(t)
	t.Cleanup(func() { f.store.Close() })
	began := time.Now()
	f.fill(t)
	f.fillTime = time.Since(began)
	t.Logf("the fleet was made in %v", f.fillTime)
	f.service = launch(t, redis.URL())
	f.awaitQuiet(t)
	return f
}

// awaitQuiet waits until the service has put all events into the organization's feed.
func (f *fleet) awaitQuiet(t *testing.T) {
	t.Helper()
	const quiet = 0.05 // of a core
	for range 300 {
		if f.processor(t, func() { time.Sleep(time.Second) }) < quiet {
			return
		}
	}
	t.Fatal("the service is still busy")
}

func (f *fleet) fill(t *testing.T) {
	t.Helper()
	f.apiKey, f.key = newOrganization(t, f.store, "a large fleet")
	atOnce(t, fleetAgents, func(ctx context.Context, i int) error {
		made, err := f.store.CreateAgent(ctx, f.key, redisstore.Agent{Name: fmt.Sprintf("agent %d", i), Scopes: []string{"tool:search"}}, token.Hash(fmt.Sprint(i)), nil)
		f.agents[i] = made.ID
		return err
	})
	atOnce(t, fleetSessions, func(ctx context.Context, i int) error {
		made, err := f.store.CreateSession(ctx, f.key, redisstore.NewSession{Agent: f.agents[i%fleetAgents], MaxActions: 1000, MaxValue: 10 * money.USD, Lifetime: 8 * time.Hour})
		f.sessions[i] = made.ID
		return err
	})
	atOnce(t, fleetSessions, func(ctx context.Context, i int) error {
		_, err := f.store.Charge(ctx, redisstore.Caller{Key: &f.key}, f.sessions[i], redisstore.Charge{Count: 1, Value: money.MicroUSD(1 + i), ActionType: fmt.Sprintf("type %d", i%7)})
		return err
	})
}

// atOnce calls do for every number below count, several hundred at a time. It fails the test with an error.
func atOnce(t *testing.T, count int, do func(ctx context.Context, i int) error) {
	t.Helper()
	const workers = 256
	var running sync.WaitGroup
	failed := make([]error, workers)
	for worker := range workers {
		running.Go(func() {
			for i := worker; i < count && failed[worker] == nil; i += workers {
				failed[worker] = do(t.Context(), i)
			}
		})
	}
	running.Wait()
	must(0, errors.Join(failed...))(t)
}
