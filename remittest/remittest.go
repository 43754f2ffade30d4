// Package remittest runs Remit in the process of a test, so that an agent's budget is tested like everything else about it.
//
//	func TestTheAgentStopsWhenItsBudgetIsSpent(t *testing.T) {
//		remit := remittest.New(t)
//		session := remit.Session(t, client.SessionParams{MaxActions: 3})
//		if err := agent.Run(t.Context(), session); !errors.Is(err, agent.ErrOutOfBudget) {
//			t.Error(err)
//		}
//	}
//
// It is the service itself, on an in-memory Redis, and ready in milliseconds. Its clock stands still until Advance moves it:
// sessions, transactions, leases and tokens then expire, days turn and rates refill as they do in time. Proofs (DPoP),
// assertions of clients and waits go by the time of the machine. Webhooks are not delivered, and there is no console.
package remittest

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"remit/client"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
)

// stopTime bounds the end of the service, which waits for requests in progress.
const stopTime = 5 * time.Second

// Remit is a service, and one organization in it.
type Remit struct {
	URL          string // such as http://127.0.0.1:40123
	Client       *client.Client
	Organization *client.Organization
	APIKey       string // of the organization

	redis *miniredis.Miniredis
	mu    sync.Mutex
	now   time.Time
}

// New starts a service, which ends with the test. Its clock begins at the machine's time.
func New(t testing.TB) *Remit {
	t.Helper()
	r := &Remit{redis: miniredis.NewMiniRedis(), now: time.Now().UTC().Truncate(time.Millisecond)}
	r.redis.SetTime(r.now)
	r.redis.ClockTTL(true)
	if err := r.redis.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.redis.Close)
	store := must(redisstore.Open(redisstore.Config{
		URL: "redis://" + r.redis.Addr(), RefreshLifetime: token.RefreshLifetime, AccessLifetime: token.AccessLifetime,
		KeepsFeeds: true,
	}))(t)
	t.Cleanup(func() { _ = store.Close() })
	r.serve(t, server.New(server.Config{
		Store: store, Log: slog.New(slog.DiscardHandler), Limits: server.Limits{Off: true}, Clock: r.Now,
	}))
	r.createOrganization(t)
	return r
}

// serve serves until the test ends.
func (r *Remit) serve(t testing.TB, s *server.Server) {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.URL = "http://" + listener.Addr().String()
	s.SetKeyring(newKeyring(t, r.URL))
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	connections := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(func() {
		connections.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("the service did not stop: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("the service did not serve: %v", err)
		}
	})
	r.Client = must(client.New(r.URL, client.Options{HTTPClient: &http.Client{Transport: connections}}))(t)
}

func newKeyring(t testing.TB, issuer string) *token.Keyring {
	t.Helper()
	signing := must(token.ParseSigningKey(must(token.GenerateSigningKey(token.Ed25519))(t)))(t)
	refresh := must(token.ParseRefreshKey(token.GenerateRefreshKey()))(t)
	return must(token.NewKeyring(issuer, []*token.SigningKey{signing}, []*token.RefreshKey{refresh}))(t)
}

// must returns a value without an error, which ends the test.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func (r *Remit) createOrganization(t testing.TB) {
	t.Helper()
	made := must(r.Client.CreateOrganization(t.Context(), client.OrganizationParams{Name: "test"}))(t)
	r.APIKey = string(made.APIKey)
	r.Organization = r.Client.Organization(r.APIKey)
}

// Agent returns a new agent of the organization.
func (r *Remit) Agent(t testing.TB, p client.AgentParams) *client.Agent {
	t.Helper()
	id, secret := r.createAgent(t, p)
	return r.Client.Agent(id, secret)
}

// Session returns a new session as its agent uses it: a new agent with the session's scopes, so p.AgentID must be empty. For
// one more session of an agent, call Organization.CreateSession.
func (r *Remit) Session(t testing.TB, p client.SessionParams) *client.Session {
	t.Helper()
	session, _ := r.Environment(t, p)
	return session
}

// Environment is Session for an agent that is tested as a program of its own. It also returns the variables that
// client.SessionFromEnv reads, as os/exec takes them.
func (r *Remit) Environment(t testing.TB, p client.SessionParams) (session *client.Session, variables []string) {
	t.Helper()
	if p.AgentID != "" {
		t.Fatal("remittest: a session gets an agent of its own; leave AgentID empty, or call Organization.CreateSession")
	}
	id, secret := r.createAgent(t, client.AgentParams{Scopes: p.Scopes})
	p.AgentID = id
	made := must(r.Organization.CreateSession(t.Context(), p))(t)
	variables = []string{"REMIT_ADDR=" + r.URL, "REMIT_AGENT=" + id, "REMIT_SECRET=" + secret, "REMIT_SESSION=" + made.ID}
	return r.Client.Agent(id, secret).Session(made.ID), variables
}

func (r *Remit) createAgent(t testing.TB, p client.AgentParams) (id, secret string) {
	t.Helper()
	if p.Name == "" {
		p.Name = "agent"
	}
	made := must(r.Organization.CreateAgent(t.Context(), p))(t)
	return made.ID, string(made.Secret)
}

// Now returns the time by the service's clock.
func (r *Remit) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// Advance moves the service's clock. It panics if d is negative. An agent renews its token when that has expired.
func (r *Remit) Advance(d time.Duration) {
	if d < 0 {
		panic("remittest: the clock cannot be set back")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
	r.redis.SetTime(r.now)
}
