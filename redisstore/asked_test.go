package redisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// asked is every operation that a caller is checked for: on which agent and which session it is asked.
type asked struct {
	name string
	ask  func(s *Store, t *testing.T, agent, session uuid.UUID) error
}

// errOf returns the error of an operation whose value does not matter.
func errOf[T any](_ T, err error) error { return err }

// askedByKey is every operation that an API key may ask for.
func askedByKey(key APIKey) []asked {
	return append([]asked{
		{"Organization", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			return errOf(s.Organization(t.Context(), key))
		}},
		{"RotateAPIKey", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			return errOf(s.RotateAPIKey(t.Context(), key, APIKey{Hash: [32]byte{9}}, 0, nil))
		}},
		{"CreateAgent", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			return errOf(s.CreateAgent(t.Context(), key, Agent{Name: "spy"}, [32]byte{}, nil))
		}},
		{"Agents", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			return errOf(s.Agents(t.Context(), key, Query{Limit: 1}))
		}},
		{"Agent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.Agent(t.Context(), key, agent))
		}},
		{"RevokeAgent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.RevokeAgent(t.Context(), key, agent))
		}},
		{"DeleteAgent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.DeleteAgent(t.Context(), key, agent))
		}},
		{"RotateAgentSecret", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.RotateAgentSecret(t.Context(), key, agent, [32]byte{9}, 0, nil))
		}},
		{"Families", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.Families(t.Context(), key, agent, Query{Limit: 1}))
		}},
		{"EndFamily", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return s.EndFamily(t.Context(), key, agent, NewID(agent))
		}},
		{"RevokeFamilies", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return s.RevokeFamilies(t.Context(), key, agent)
		}},
		{"CreateSession", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.CreateSession(t.Context(), key, NewSession{Agent: agent, MaxActions: 1, Lifetime: 1e9}))
		}},
		{"ChangeLimits", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.ChangeLimits(t.Context(), key, session, NewLimits{MaxActions: new(int64(99))}))
		}},
		{"ChangeAgent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.ChangeAgent(t.Context(), key, agent, AgentChanges{Name: new("spy")}))
		}},
		{"SuspendAgent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.SuspendAgent(t.Context(), key, agent, ""))
		}},
		{"ResumeAgent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.ResumeAgent(t.Context(), key, agent, ""))
		}},
		{"SuspendAgents", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			return errOf(s.SuspendAgents(t.Context(), key, ""))
		}},
		{"ResumeAgents", func(s *Store, t *testing.T, _, _ uuid.UUID) error { return errOf(s.ResumeAgents(t.Context(), key, "")) }},
		{"SetBudget", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			return errOf(s.SetBudget(t.Context(), key, 1, BudgetForever))
		}},
		{"Budget", func(s *Store, t *testing.T, _, _ uuid.UUID) error { return errOf(s.Budget(t.Context(), key)) }},
		{"DeleteBudget", func(s *Store, t *testing.T, _, _ uuid.UUID) error { return s.DeleteBudget(t.Context(), key) }},
		{"SuspendSession", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.SuspendSession(t.Context(), key, session, ""))
		}},
		{"ResumeSession", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.ResumeSession(t.Context(), key, session, ""))
		}},
		{"ApproveRequest", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.ApproveRequest(t.Context(), key, session, NewID(session), Approval{}))
		}},
		{"DenyRequest", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.DenyRequest(t.Context(), key, session, NewID(session), ""))
		}},
	}, askedByEither(Caller{Key: &key})...)
}

// askedByEither is every operation that an API key and an agent may ask for.
func askedByEither(caller Caller) []asked {
	return []asked{
		{"Session", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.Session(t.Context(), caller, session))
		}},
		{"EndSession", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.EndSession(t.Context(), caller, session))
		}},
		{"Charge", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.Charge(t.Context(), caller, session, Charge{Count: 1, Value: 1}))
		}},
		{"ChargeBatch", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return chargeTwice(t.Context(), s, caller, session, nil)
		}},
		{"Transactions", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			return errOf(s.Transactions(t.Context(), caller, Query{Limit: 1}))
		}},
		{"Transactions of a session", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.Transactions(t.Context(), caller, Query{Limit: 1, Session: session}))
		}},
		{"Events", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			_, _, err := s.Events(t.Context(), caller, agent, "", 1)
			return err
		}},
		{"Sessions", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			return errOf(s.Sessions(t.Context(), caller, Query{Limit: 1}))
		}},
		{"Sessions of one agent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			return errOf(s.Sessions(t.Context(), caller, Query{Limit: 1, Agent: agent}))
		}},
		{"CreateChildSession", func(s *Store, t *testing.T, agent, session uuid.UUID) error {
			return errOf(s.CreateChildSession(t.Context(), caller, NewSession{
				Agent: agent, Parent: session, MaxActions: 1, MaxValue: 1, Lifetime: time.Minute}))
		}},
		{"Tree", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.Tree(t.Context(), caller, session))
		}},
		{"SessionRequests", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.SessionRequests(t.Context(), caller, session))
		}},
		{"SessionRequest", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.SessionRequest(t.Context(), caller, session, NewID(session)))
		}},
		{"GrantLease", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.GrantLease(t.Context(), caller, session, NewLease{MaxActions: 1, MaxValue: 1, Lifetime: time.Minute}))
		}},
		{"SettleLease", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.SettleLease(t.Context(), caller, NewID(session), NewSettlement{ActionCount: 1}))
		}},
		{"Lease", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return errOf(s.Lease(t.Context(), caller, NewID(session)))
		}},
	}
}
