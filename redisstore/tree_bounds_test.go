package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// A scope that an agent has lost is not its to give, whatever its session holds.
func TestAnAgentGivesNoScopeThatItHasLost(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		planner := must(s.CreateAgent(t.Context(), w.key, Agent{Name: "planner", Scopes: []string{"pay", "read", "sessions:delegate"}}, [32]byte{3}, nil))(t)
		own := tenant{key: w.key, agent: planner, secret: [32]byte{3}}
		own.session = must(s.CreateSession(t.Context(), w.key, NewSession{Agent: planner.ID, MaxActions: 10, Lifetime: time.Hour, Scopes: planner.Scopes}))(t)
		other := must(s.CreateAgent(t.Context(), w.key, Agent{Name: "other", Scopes: []string{"pay", "read"}}, [32]byte{4}, nil))(t)
		n := NewSession{Agent: other.ID, Parent: own.session.ID, MaxActions: 1, Lifetime: time.Minute}
		by := byToken(own.exchange(t, s))
		if child := must(s.CreateChildSession(t.Context(), by, n))(t); !slices.Equal(child.Scopes, []string{"pay", "read"}) {
			t.Errorf("before, a child has the scopes %v", child.Scopes)
		}
		must(s.ChangeAgent(t.Context(), w.key, planner.ID, AgentChanges{Scopes: &[]string{"read", "sessions:delegate"}}))(t)
		for name, caller := range map[string]Caller{"its token": by, "the key": w.byKey()} {
			if child := must(s.CreateChildSession(t.Context(), caller, n))(t); !slices.Equal(child.Scopes, []string{"read"}) {
				t.Errorf("by %s, a child has the scopes %v", name, child.Scopes)
			}
			asks := n
			asks.Scopes = []string{"pay"}
			_, err := s.CreateChildSession(t.Context(), caller, asks)
			var refused *ScopeError
			if !errors.As(err, &refused) || refused.Scope != "pay" {
				t.Errorf("by %s, a child with the lost scope: %v", name, err)
			}
		}
	})
}
