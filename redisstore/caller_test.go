package redisstore

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"
	"remit/money"
)

// asked is every operation that a caller is checked for: on which agent and which session it is asked.
type asked struct {
	name string
	ask  func(s *Store, t *testing.T, agent, session uuid.UUID) error
}

func askedByKey(key APIKey) []asked {
	return append([]asked{
		{"Organization", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			_, err := s.Organization(t.Context(), key)
			return err
		}},
		{"RotateAPIKey", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			_, err := s.RotateAPIKey(t.Context(), key, APIKey{Hash: [32]byte{9}}, 0, nil)
			return err
		}},
		{"CreateAgent", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			_, err := s.CreateAgent(t.Context(), key, Agent{Name: "spy"}, [32]byte{}, nil)
			return err
		}},
		{"Agents", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			_, err := s.Agents(t.Context(), key, Query{Limit: 1})
			return err
		}},
		{"Agent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			_, err := s.Agent(t.Context(), key, agent)
			return err
		}},
		{"RevokeAgent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			_, err := s.RevokeAgent(t.Context(), key, agent)
			return err
		}},
		{"DeleteAgent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			_, err := s.DeleteAgent(t.Context(), key, agent)
			return err
		}},
		{"RotateAgentSecret", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			_, err := s.RotateAgentSecret(t.Context(), key, agent, [32]byte{9}, 0, nil)
			return err
		}},
		{"CreateSession", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			_, err := s.CreateSession(t.Context(), key, NewSession{Agent: agent, MaxActions: 1, Lifetime: 1e9})
			return err
		}},
		{"ChangeLimits", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.ChangeLimits(t.Context(), key, session, NewLimits{MaxActions: new(int64(99))})
			return err
		}},
	}, slices.Concat(askedAboveByKey(key), askedByEither(Caller{Key: &key}))...)
}

func askedByEither(caller Caller) []asked {
	return append([]asked{
		{"Session", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.Session(t.Context(), caller, session)
			return err
		}},
		{"EndSession", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.EndSession(t.Context(), caller, session)
			return err
		}},
		{"Charge", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.Charge(t.Context(), caller, session, Charge{Count: 1, Value: 1})
			return err
		}},
		{"ChargeBatch", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			return chargeTwice(t.Context(), s, caller, session, nil)
		}},
		{"Transactions", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			_, err := s.Transactions(t.Context(), caller, Query{Limit: 1})
			return err
		}},
		{"Transactions of a session", func(s *Store, t *testing.T, _, session uuid.UUID) error {
			_, err := s.Transactions(t.Context(), caller, Query{Limit: 1, Session: session})
			return err
		}},
		{"Events", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			_, _, err := s.Events(t.Context(), caller, agent, "", 1)
			return err
		}},
		{"Sessions", func(s *Store, t *testing.T, _, _ uuid.UUID) error {
			_, err := s.Sessions(t.Context(), caller, Query{Limit: 1})
			return err
		}},
		{"Sessions of one agent", func(s *Store, t *testing.T, agent, _ uuid.UUID) error {
			_, err := s.Sessions(t.Context(), caller, Query{Limit: 1, Agent: agent})
			return err
		}},
	}, askedBelowByEither(caller)...)
}

func TestAWrongKeyIsRefusedEverywhereAndChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		before := w.contents(t, s)
		for name, key := range map[string]APIKey{
			"wrong hash":           {Organization: w.key.Organization, Hash: [32]byte{7}},
			"unknown organization": {Organization: NewRootID(), Hash: w.key.Hash},
		} {
			for _, operation := range askedByKey(key) {
				err := operation.ask(s, t, w.agent.ID, w.session.ID)
				wantError(t, operation.name+" with "+name, err, ErrInvalidAPIKey)
			}
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestAnotherOrganizationsKeyReadsAndChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		foreign := newOrganization(t, s)
		before := w.contents(t, s)
		want := map[string]error{
			"Agent": ErrUnknownAgent, "RevokeAgent": ErrUnknownAgent, "DeleteAgent": ErrUnknownAgent,
			"RotateAgentSecret": ErrUnknownAgent,
			"CreateSession":     ErrUnknownAgent, "Sessions of one agent": ErrUnknownAgent,
			"Session": ErrUnknownSession, "EndSession": ErrUnknownSession, "Charge": ErrUnknownSession,
			"ChargeBatch": ErrUnknownSession, "ChangeLimits": ErrUnknownSession, "Transactions of a session": ErrUnknownSession,
			"Events": ErrUnknownAgent, "ChangeAgent": ErrUnknownAgent, "SuspendAgent": ErrUnknownAgent, "ResumeAgent": ErrUnknownAgent,
			"SuspendSession": ErrUnknownSession, "ResumeSession": ErrUnknownSession, "ApproveRequest": ErrUnknownSession,
			"DenyRequest": ErrUnknownSession, "CreateChildSession": ErrUnknownSession, "Tree": ErrUnknownSession,
			"SessionRequests": ErrUnknownSession, "GrantLease": ErrUnknownSession, "SettleLease": ErrUnknownLease,
		}
		for _, operation := range askedByKey(foreign) {
			if want[operation.name] == nil {
				continue
			}
			foreignErr := operation.ask(s, t, w.agent.ID, w.session.ID)
			wantError(t, operation.name, foreignErr, want[operation.name])
			unknownErr := operation.ask(s, t, NewID(w.agent.ID), NewID(w.agent.ID))
			wantError(t, operation.name+" on what does not exist", unknownErr, want[operation.name])
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

// An agent that shares the caller's cell, and so its slot, is as far away as any other.
func TestATokenReachesNoOtherAgent(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		before := w.contents(t, s)
		for name, id := range map[string]uuid.UUID{"the same cell": NewID(w.agent.ID), "another cell": otherCell(w.agent.ID)} {
			spy := putAgent(t, s, w.key, id)
			for _, operation := range askedByEither(byToken(spy)) {
				want := map[string]error{
					"Session": ErrUnknownSession, "EndSession": ErrUnknownSession, "Charge": ErrUnknownSession,
					"Sessions": nil, "Sessions of one agent": ErrUnknownAgent, "Events": ErrUnknownAgent,
					"ChargeBatch": ErrUnknownSession, "Transactions": nil, "Transactions of a session": ErrUnknownSession,
					"CreateChildSession": ErrUnknownSession, "Tree": ErrUnknownSession, "SessionRequests": ErrUnknownSession,
					"GrantLease": ErrUnknownSession, "SettleLease": ErrUnknownLease,
				}[operation.name]
				err := operation.ask(s, t, w.agent.ID, w.session.ID)
				wantError(t, operation.name+" from "+name, err, want)
			}
			if own := must(s.Sessions(t.Context(), byToken(spy), Query{Limit: 10}))(t); len(own.Items) != 0 {
				t.Errorf("from %s it sees %+v", name, own.Items)
			}
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestATokenOfNoAgentIsNotLive(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant := w.exchange(t, s)
		gone := AccessToken{Organization: w.key.Organization, Agent: NewID(w.agent.ID), Family: grant.Family}
		elsewhere := grant.AccessToken
		elsewhere.Organization = NewRootID()
		for name, token := range map[string]AccessToken{"no such agent": gone, "another organization's": elsewhere} {
			for _, operation := range askedByEither(Caller{Token: &token}) {
				err := operation.ask(s, t, token.Agent, w.session.ID)
				wantError(t, operation.name+": "+name, err, ErrInvalidToken)
			}
			wantError(t, "RevokeFamily: "+name, s.RevokeFamily(t.Context(), token, grant.Family), ErrInvalidToken)
		}
	})
}

// putAgent creates an agent with an id of the test's choice, and exchanges its secret.
func putAgent(t *testing.T, s *Store, key APIKey, id uuid.UUID) Grant {
	t.Helper()
	secret := [32]byte{5}
	must(s.client.Run(t.Context(), flow{}, createAgent.script, []string{s.keys.agent(id), s.keys.events(id), s.keys.agentOpen(id)},
		key.Organization[:], "neighbour", "read", "", "", secret[:], s.auditAs(t.Context(), actorKey), ""))(t)
	return must(s.ExchangeSecret(t.Context(), id, secret))(t)
}

// otherCell returns a fresh id that is in another cell than this one.
func otherCell(id uuid.UUID) uuid.UUID { return newID(cellOf(id) + 1) }
