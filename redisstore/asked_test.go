package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
)

// askedAboveByKey is every operation of a fleet's commander: suspension, limits of agents, budgets, decisions on requests.
func askedAboveByKey(key APIKey) []asked {
	ofAgent := func(name string, ask func(ctx context.Context, s *Store, agent uuid.UUID) error) asked {
		return asked{name, func(s *Store, t *testing.T, agent, _ uuid.UUID) error { return ask(t.Context(), s, agent) }}
	}
	ofSession := func(name string, ask func(ctx context.Context, s *Store, session uuid.UUID) error) asked {
		return asked{name, func(s *Store, t *testing.T, _, session uuid.UUID) error { return ask(t.Context(), s, session) }}
	}
	return []asked{
		ofAgent("ChangeAgent", func(ctx context.Context, s *Store, agent uuid.UUID) error {
			_, err := s.ChangeAgent(ctx, key, agent, AgentChanges{Name: new("spy")})
			return err
		}),
		ofAgent("SuspendAgent", func(ctx context.Context, s *Store, agent uuid.UUID) error {
			_, err := s.SuspendAgent(ctx, key, agent, "")
			return err
		}),
		ofAgent("ResumeAgent", func(ctx context.Context, s *Store, agent uuid.UUID) error {
			_, err := s.ResumeAgent(ctx, key, agent, "")
			return err
		}),
		ofAgent("SuspendAgents", func(ctx context.Context, s *Store, _ uuid.UUID) error {
			_, err := s.SuspendAgents(ctx, key, "")
			return err
		}),
		ofAgent("ResumeAgents", func(ctx context.Context, s *Store, _ uuid.UUID) error {
			_, err := s.ResumeAgents(ctx, key, "")
			return err
		}),
		ofAgent("SetBudget", func(ctx context.Context, s *Store, _ uuid.UUID) error {
			_, err := s.SetBudget(ctx, key, 1, BudgetForever)
			return err
		}),
		ofAgent("Budget", func(ctx context.Context, s *Store, _ uuid.UUID) error {
			_, err := s.Budget(ctx, key)
			return err
		}),
		ofAgent("DeleteBudget", func(ctx context.Context, s *Store, _ uuid.UUID) error { return s.DeleteBudget(ctx, key) }),
		ofSession("SuspendSession", func(ctx context.Context, s *Store, session uuid.UUID) error {
			_, err := s.SuspendSession(ctx, key, session, "")
			return err
		}),
		ofSession("ResumeSession", func(ctx context.Context, s *Store, session uuid.UUID) error {
			_, err := s.ResumeSession(ctx, key, session, "")
			return err
		}),
		ofSession("ApproveRequest", func(ctx context.Context, s *Store, session uuid.UUID) error {
			_, err := s.ApproveRequest(ctx, key, session, NewID(session), Approval{})
			return err
		}),
		ofSession("DenyRequest", func(ctx context.Context, s *Store, session uuid.UUID) error {
			_, err := s.DenyRequest(ctx, key, session, NewID(session), "")
			return err
		}),
	}
}

// askedBelowByEither is every operation on parts of a session that a key and an agent may ask for: children, leases, requests.
func askedBelowByEither(caller Caller) []asked {
	return []asked{
		{"CreateChildSession", func(s *Store, t *testing.T, agent, session uuid.UUID) error {
			_, err := s.CreateChildSession(t.Context(), caller, NewSession{
				Agent: agent, Parent: session, MaxActions: 1, MaxValue: 1, Lifetime: time.Minute})
			return err
		}},
		{"Tree", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.Tree(t.Context(), caller, session)
			return err
		}},
		{"SessionRequests", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.SessionRequests(t.Context(), caller, session)
			return err
		}},
		{"GrantLease", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.GrantLease(t.Context(), caller, session, NewLease{MaxActions: 1, MaxValue: 1, Lifetime: time.Minute})
			return err
		}},
		{"SettleLease", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.SettleLease(t.Context(), caller, NewID(session), NewSettlement{ActionCount: 1})
			return err
		}},
	}
}
