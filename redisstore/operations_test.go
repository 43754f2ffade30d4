package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/lua"
	"remit/money"
)

// operation is one thing that the store does, and the last script it runs for it.
type operation struct {
	name   string
	script *script
	do     func(context.Context, *Store) error
}

// everyOperation returns all that can be done to a tenant, by token where that is possible; no more than one of them
// is to be done to the same tenant.
func everyOperation(w tenant, g Grant) []operation {
	caller := byToken(g)
	n := NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour}
	return []operation{
		{"CreateOrganization", createOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.CreateOrganization(ctx, APIKey{Organization: NewRootID()}, "acme", "")
			return err
		}},
		{"Organization", authenticateOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Organization(ctx, w.key)
			return err
		}},
		{"RotateAPIKey", rotateAPIKey, func(ctx context.Context, s *Store) error {
			_, err := s.RotateAPIKey(ctx, w.key, [32]byte{3}, time.Hour)
			return err
		}},
		{"CreateAgent, its index", indexAgent, func(ctx context.Context, s *Store) error {
			_, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3})
			return err
		}},
		{"CreateAgent", createAgent, func(ctx context.Context, s *Store) error {
			_, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout"}, [32]byte{3})
			return err
		}},
		{"Agents", listOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Agents(ctx, w.key, Query{Limit: 1})
			return err
		}},
		{"Agent", authenticateOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Agent(ctx, w.key, w.agent.ID)
			return err
		}},
		{"RevokeAgent", revokeAgent, func(ctx context.Context, s *Store) error {
			_, err := s.RevokeAgent(ctx, w.key, w.agent.ID)
			return err
		}},
		{"RotateAgentSecret", rotateAgentSecret, func(ctx context.Context, s *Store) error {
			_, err := s.RotateAgentSecret(ctx, w.key, w.agent.ID, [32]byte{3}, time.Hour)
			return err
		}},
		{"ExchangeSecret", exchangeSecret, func(ctx context.Context, s *Store) error {
			_, err := s.ExchangeSecret(ctx, w.agent.ID, w.secret)
			return err
		}},
		{"RotateRefresh", rotateRefresh, func(ctx context.Context, s *Store) error {
			_, err := s.RotateRefresh(ctx, w.agent.ID, g.Family, 1)
			return err
		}},
		{"RevokeFamily", revokeFamily, func(ctx context.Context, s *Store) error {
			return s.RevokeFamily(ctx, g.AccessToken, g.Family)
		}},
		{"CreateSession, its index", indexSession, func(ctx context.Context, s *Store) error {
			_, err := s.CreateSession(ctx, w.key, n)
			return err
		}},
		{"CreateSession", createSession, func(ctx context.Context, s *Store) error {
			_, err := s.CreateSession(ctx, w.key, n)
			return err
		}},
		{"Session", getSession, func(ctx context.Context, s *Store) error {
			_, err := s.Session(ctx, caller, w.session.ID)
			return err
		}},
		{"Sessions", listOfAgent, func(ctx context.Context, s *Store) error {
			_, err := s.Sessions(ctx, caller, Query{Limit: 1})
			return err
		}},
		{"Sessions of the organization", listOrganization, func(ctx context.Context, s *Store) error {
			_, err := s.Sessions(ctx, w.byKey(), Query{Limit: 1, Status: Active})
			return err
		}},
		{"Charge", chargeSession, func(ctx context.Context, s *Store) error {
			_, err := s.Charge(ctx, caller, w.session.ID, Charge{Count: 1, Value: 1})
			return err
		}},
		{"EndSession", endSession, func(ctx context.Context, s *Store) error {
			_, err := s.EndSession(ctx, caller, w.session.ID)
			return err
		}},
	}
}

// newOperations returns every operation, each on a tenant of its own.
func newOperations(t *testing.T, s *Store) ([]operation, []tenant) {
	t.Helper()
	var operations []operation
	var tenants []tenant
	for i := range everyOperation(tenant{key: APIKey{Organization: uuid.Nil}}, Grant{}) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		operations = append(operations, everyOperation(w, w.exchange(t, s))[i])
		tenants = append(tenants, w)
	}
	return operations, tenants
}

// loadScripts makes every script known to Redis, so that each operation is one request.
func loadScripts(t *testing.T, s *Store) {
	t.Helper()
	client := peek(t, s)
	for name := range luaFiles(t) {
		for _, source := range []string{lua.Source(name), lua.OnceSource(name)} {
			if err := client.ScriptLoad(t.Context(), source).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
