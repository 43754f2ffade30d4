package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Agent is a machine identity of one organization.
type Agent struct {
	ID           uuid.UUID
	Organization uuid.UUID
	Name         string
	Scopes       []string
	Description  string
	Metadata     string // JSON object, "" for none
	Created      time.Time
	Revoked      time.Time // zero while it is active
}

// Status returns Active or Revoked.
func (a *Agent) Status() Status {
	if a.Revoked.IsZero() {
		return Active
	}
	return Revoked
}

var (
	indexAgent        = newScript("index_agent", writes)
	createAgent       = newSealedScript("create_agent")
	revokeAgent       = newScript("revoke_agent", writes)
	deleteAgent       = newScript("delete_agent", writes)
	rotateAgentSecret = newSealedScript("rotate_agent_secret")
)

// CreateAgent creates an agent of the key's organization and returns it with its id and creation time; of a only what
// the caller chooses counts. Errors: ErrInvalidAPIKey, *QuotaError, *RateError.
func (s *Store) CreateAgent(ctx context.Context, key APIKey, a Agent, secretHash [32]byte) (Agent, error) {
	return s.CreateAgentOnce(ctx, key, a, secretHash, nil)
}

// CreateAgentOnce is CreateAgent with an idempotency key, nil for none. Its errors are also ErrKeyReused and ErrSealed.
func (s *Store) CreateAgentOnce(ctx context.Context, key APIKey, a Agent, secretHash [32]byte, once *Idempotency) (Agent, error) {
	a.ID, a.Organization = NewRootID(), key.Organization
	if once != nil {
		a.ID = newID(once.cell(string(key.Organization[:]))) // the same cell each time, for that of the first agent has the outcome
		once.at, once.bounded = a.ID, true
		if err := s.admit(ctx, Caller{Key: &key}, once); err != nil {
			return Agent{}, err
		}
	}
	act := actor{organization: key.Organization, agent: a.ID, flow: s.proven.flow(key)}
	outcome := s.keys.outcome(a.ID, act.keyDigest(once, ""))
	held, err := s.reserveAgent(ctx, key, a, func() bool { return once != nil && s.isKept(ctx, act.flow, outcome) })
	if err != nil {
		return Agent{}, s.released(ctx, Caller{Key: &key}, once, err)
	}
	created, err := s.writeAgent(ctx, act, a, secretHash, once, outcome)
	replayed := once != nil && once.Replayed
	held.settle(err, replayed)
	if (creation{err, replayed}).cameToNothing() {
		s.drop(ctx, s.keys.organizationAgents(key.Organization), members{}, a.ID)
	}
	return created, err
}

func (s *Store) writeAgent(ctx context.Context, act actor, a Agent, secretHash [32]byte, once *Idempotency, outcome string) (Agent, error) {
	r, err := s.performSealed(ctx, createAgent, act.flow, once, outcome, act.organization,
		[]string{s.keys.agent(a.ID), s.keys.events(a.ID)},
		act.organization, a.Name, strings.Join(a.Scopes, " "), a.Description, a.Metadata, secretHash, s.auditAs(ctx, actorKey))
	if err != nil {
		return Agent{}, err
	}
	a.Created = r.Time(0)
	s.tidyAfterAgent(ctx, act.organization)
	if once == nil || r.Err != nil {
		return a, r.Err
	}
	if a.ID, err = uuid.Parse(r.Text(1)); err != nil {
		return Agent{}, errReply
	}
	if once.Replayed {
		a.Metadata, err = s.firstMetadata(ctx, act.flow, s.keys.agent(a.ID), "metadata", a.Metadata)
	}
	return a, err
}

// nothingVisible says that a lost index write has changed nothing that anyone can see: an entry without its object is
// no object.
func nothingVisible(err error) error {
	if errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %v", ErrUnavailable, err) // not wrapped: it is no doubt any more
	}
	return err
}

// Agent returns an agent of the key's organization. Errors: ErrInvalidAPIKey, ErrUnknownAgent.
func (s *Store) Agent(ctx context.Context, key APIKey, id uuid.UUID) (Agent, error) {
	if _, err := s.Organization(ctx, key); err != nil {
		return Agent{}, err
	}
	agents, err := s.loadAgents(ctx, key.Organization, []uuid.UUID{id})
	if err != nil {
		return Agent{}, err
	}
	if agents[0] == nil {
		return Agent{}, ErrUnknownAgent
	}
	return *agents[0], nil
}

// RevokeAgent revokes an agent and returns since when it is. From this answer on no credential of it is accepted.
// Errors: ErrInvalidAPIKey, ErrUnknownAgent.
func (s *Store) RevokeAgent(ctx context.Context, key APIKey, id uuid.UUID) (time.Time, error) {
	if _, err := s.authenticate(ctx, s.proven.urgent(key), key); err != nil {
		return time.Time{}, err
	}
	r, err := s.client.Run(ctx, s.proven.urgent(key), revokeAgent, []string{s.keys.agent(id), s.keys.events(id)},
		key.Organization, s.auditAs(ctx, actorKey))
	if err != nil {
		return time.Time{}, err
	}
	return r.Time(0), r.Err
}

// DeleteAgent revokes an agent as RevokeAgent does, and lets its record end once its retention is over. Until then it reads
// as revoked. Errors: ErrInvalidAPIKey, ErrUnknownAgent.
func (s *Store) DeleteAgent(ctx context.Context, key APIKey, id uuid.UUID) (time.Time, error) {
	if _, err := s.authenticate(ctx, s.proven.urgent(key), key); err != nil {
		return time.Time{}, err
	}
	r, err := s.client.Run(ctx, s.proven.urgent(key), deleteAgent, []string{s.keys.agent(id), s.keys.events(id)},
		key.Organization, s.deletedLifetime(), s.auditAs(ctx, actorKey))
	if err != nil {
		return time.Time{}, err
	}
	return r.Time(0), r.Err
}

// deletedLifetime is how long a deleted agent stays readable, in ms: its retention, and never less than an access token of
// it may live.
func (s *Store) deletedLifetime() int64 {
	return max(s.config.Retention.Milliseconds(), s.markLifetime())
}

// RotateAgentSecret makes newHash the agent's secret and returns when the secret in use ends: after grace.
// Errors: ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked.
func (s *Store) RotateAgentSecret(ctx context.Context, key APIKey, id uuid.UUID, newHash [32]byte,
	grace time.Duration) (time.Time, error) {
	return s.RotateAgentSecretOnce(ctx, key, id, newHash, grace, nil)
}

// RotateAgentSecretOnce is RotateAgentSecret with an idempotency key, nil for none. Its errors are also ErrKeyReused and
// ErrSealed.
func (s *Store) RotateAgentSecretOnce(ctx context.Context, key APIKey, id uuid.UUID, newHash [32]byte,
	grace time.Duration, once *Idempotency) (time.Time, error) {
	c := Caller{Key: &key}.urgently()
	if once != nil {
		once.at, once.bounded = id, true
	}
	err := s.admit(ctx, c, once)
	if isRefusedCreation(err) {
		once = nil // beyond its quota an organization still rotates, and the key is not remembered
		err = s.admit(ctx, c, nil)
	}
	if err != nil {
		return time.Time{}, err
	}
	act := actor{organization: key.Organization, agent: id, flow: s.proven.urgent(key)}
	r, err := s.performSealed(ctx, rotateAgentSecret, act.flow, once, s.keys.outcome(id, act.keyDigest(once, "")), key.Organization,
		[]string{s.keys.agent(id), s.keys.events(id)}, key.Organization, newHash, grace.Milliseconds(), s.auditAs(ctx, actorKey))
	if err != nil {
		return time.Time{}, s.released(ctx, c, once, err)
	}
	return r.Time(0), r.Err
}

// loadAgents returns the agents with these ids, in their order, with nil for one that does not exist or is not of the
// organization.
func (s *Store) loadAgents(ctx context.Context, organization uuid.UUID, ids []uuid.UUID) ([]*Agent, error) {
	replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, keysOf(ids, s.keys.agent), "organization", "name", "scopes", "description", "metadata", "created", "revoked")
	if err != nil {
		return nil, err
	}
	agents := make([]*Agent, len(ids))
	for i, r := range replies {
		if r.Optional(0) != string(organization[:]) {
			continue
		}
		agents[i] = &Agent{
			ID: ids[i], Organization: organization, Name: r.Text(1), Scopes: strings.Fields(r.Text(2)),
			Description: r.Optional(3), Metadata: r.Optional(4), Created: r.Time(5), Revoked: r.TimeOrZero(6),
		}
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return agents, nil
}
