package redisstore

import (
	"context"
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

	Suspended        time.Time // since when; zero while it is not
	SuspensionReason string    // "" for none

	Audiences    []string // that its tokens may be for, besides the issuer; nil for any
	JWKS         string   // JSON Web Key Set of the keys it signs assertions with, "" for none; not with JWKSURI
	JWKSURI      string   // where it publishes them, "" for none
	DPoPRequired bool     // its tokens must be bound to a key (RFC 9449)
	NoSecret     bool     // it has no secret

	Limits AgentLimits
	Usage  AgentUsage // of Limits; not in lists

	counted countedDay
}

// Status returns Active or Revoked.
func (a *Agent) Status() Status {
	if a.Revoked.IsZero() {
		return Active
	}
	return Revoked
}

var (
	indexAgent        = newScript("identity/index_agent", writes)
	claimAgent        = newScript("identity/claim_and_index_agent", writes)
	createAgent       = newSealedScript("identity/create_agent")
	replayAgent       = newSealedScript("kernel/replay")
	revokeAgent       = newScript("identity/revoke_agent", writes)
	deleteAgent       = newScript("identity/delete_agent", writes)
	rotateAgentSecret = newSealedScript("identity/rotate_agent_secret")
)

// CreateAgent creates an agent of the key's organization and returns it with its id and creation time. Of a it reads name,
// scopes, description, metadata, limits and what it authenticates with; the hash is ignored when it has no secret. idem is nil for no idempotency key. Errors: ErrInvalidAPIKey, *QuotaError, *RateError;
// with an idempotency key ErrIdempotencyKeyReused and ErrSealed.
func (s *Store) CreateAgent(ctx context.Context, key APIKey, a Agent, secretHash [32]byte, idem *Idempotency) (Agent, error) {
	a.ID, a.Organization = NewRootID(), key.Organization
	if idem != nil {
		a.ID = newID(idem.cell(string(key.Organization[:]))) // the same cell each time: the first agent's cell has the outcome
		idem.at, idem.bounded = a.ID, true
	}
	act := actor{organization: key.Organization, agent: a.ID, flow: s.proven.flow(key)}
	c := &creation{
		key: key, id: a.ID, index: s.keys.organizationAgents(key.Organization), enter: indexAgent, claim: claimAgent,
		counted: agentsHeld, idempotency: idem, outcome: s.keys.outcome(a.ID, act.keyDigest(idem, "")),
	}
	held, err := s.reserveCreation(ctx, c, agentDemand(key.Organization, a, strings.Join(a.Scopes, " ")))
	if err != nil {
		return Agent{}, s.released(ctx, Caller{Key: &key}, idem, err)
	}
	created, err := s.writeAgent(ctx, act, a, secretHash, c)
	replayed := idem != nil && idem.Replayed
	held.finish(err, replayed)
	switch {
	case c.entered && (creationResult{err, replayed}).createdNothing():
		s.drop(ctx, c.index, members{}, a.ID)
	case err == nil && !replayed:
		s.pruneAfterAgent(ctx, key.Organization)
	}
	return created, err
}

func (s *Store) writeAgent(ctx context.Context, act actor, a Agent, secretHash [32]byte, c *creation) (Agent, error) {
	idem := c.idempotency
	r, err := s.create(ctx, c, createAgent, replayAgent, func(sc keyedScript) (*reply, error) {
		return s.performSealed(ctx, sc, act.flow, idem, c.outcome, act.organization,
			[]string{s.keys.agent(a.ID), s.keys.events(a.ID), s.keys.agentOpen(a.ID)},
			act.organization, a.Name, strings.Join(a.Scopes, " "), a.Description, a.Metadata, a.secretField(secretHash), s.auditAs(ctx, actorKey),
			givenLimits(a.Limits).text(), audiencesText(a.Audiences), a.JWKS, a.JWKSURI, a.restrictedField())
	})
	if err != nil {
		return Agent{}, err
	}
	a.Created, a.Usage = r.Time(0), usedOf(a.Limits, countedDay{}, r.Time(0), 0)
	if idem == nil || r.Err != nil {
		return a, r.Err
	}
	if a.ID, err = uuid.Parse(r.Text(1)); err != nil {
		return Agent{}, errReply
	}
	if idem.Replayed {
		a.Metadata, err = s.firstMetadata(ctx, act.flow, s.keys.agent(a.ID), "metadata", a.Metadata)
	}
	return a, err
}

// secretField returns the field secret of a new agent.
func (a *Agent) secretField(hash [32]byte) string {
	if a.NoSecret {
		return ""
	}
	return string(hash[:])
}

// restrictedField returns the field restricted of a new agent, before its limits.
func (a *Agent) restrictedField() string {
	if a.DPoPRequired {
		return "p"
	}
	return ""
}

// Agent returns an agent of the key's organization. Errors: ErrInvalidAPIKey, ErrUnknownAgent.
func (s *Store) Agent(ctx context.Context, key APIKey, id uuid.UUID) (Agent, error) {
	if _, err := s.Organization(ctx, key); err != nil {
		return Agent{}, err
	}
	agents, err := s.loadAgents(ctx, key.Organization, []uuid.UUID{id}, agentFields)
	if err != nil {
		return Agent{}, err
	}
	if agents[0] == nil {
		return Agent{}, ErrUnknownAgent
	}
	return s.withUsage(ctx, *agents[0])
}

// RevokeAgent revokes an agent and returns since when it is revoked. After this returns, no credential of it is accepted.
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

// DeleteAgent revokes an agent as RevokeAgent does. Its record reads as revoked for Config.Retention and then expires.
// Errors: ErrInvalidAPIKey, ErrUnknownAgent.
func (s *Store) DeleteAgent(ctx context.Context, key APIKey, id uuid.UUID) (time.Time, error) {
	if _, err := s.authenticate(ctx, s.proven.urgent(key), key); err != nil {
		return time.Time{}, err
	}
	agents, err := s.loadAgents(ctx, key.Organization, []uuid.UUID{id}, listedAgentFields)
	if err == nil && agents[0] != nil {
		err = s.rememberDeleted(ctx, s.proven.urgent(key), key.Organization, id, mostDeletedAgents)
	}
	if err != nil {
		return time.Time{}, err
	}
	r, err := s.client.Run(ctx, s.proven.urgent(key), deleteAgent, []string{s.keys.agent(id), s.keys.events(id)},
		key.Organization, s.deletedLifetime(), s.auditAs(ctx, actorKey))
	if err != nil {
		return time.Time{}, err
	}
	return r.Time(0), r.Err
}

// deletedLifetime is how long a deleted agent stays readable, in ms: its retention, or an access token's lifetime if that
// is longer.
func (s *Store) deletedLifetime() int64 {
	return max(s.config.Retention.Milliseconds(), s.revocationLifetime())
}

// SecretRotation replaces an agent's secret.
type SecretRotation struct {
	Hash           [32]byte      // SHA-256 of the new secret
	Grace          time.Duration // for which the secret in use stays valid
	RevokeFamilies bool          // revoke every token that was issued to the agent before
}

// revokes is the rotation's argument of the script.
func (r SecretRotation) revokes() string {
	if r.RevokeFamilies {
		return "1"
	}
	return ""
}

// RotateAgentSecret rotates the agent's secret, and returns when the one before ends. idem is nil for no idempotency key. Tokens that
// are issued during the call stay live, and a repetition under its idempotency key revokes none that were issued since. Errors:
// ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked; with an idempotency key ErrIdempotencyKeyReused and ErrSealed; after
// ErrOutcomeUnknown the secret may be replaced, and some of the tokens be revoked.
func (s *Store) RotateAgentSecret(ctx context.Context, key APIKey, id uuid.UUID, to SecretRotation, idem *Idempotency) (time.Time, error) {
	c := Caller{Key: &key}.urgently()
	if idem != nil {
		idem.at, idem.bounded = id, true
	}
	err := s.authorize(ctx, c, idem)
	if isRefusedCreation(err) {
		idem = nil // an organization over its quota may still rotate; its idempotency key is not stored
		err = s.authorize(ctx, c, nil)
	}
	if err != nil {
		return time.Time{}, err
	}
	act := actor{organization: key.Organization, agent: id, flow: s.proven.urgent(key)}
	r, err := s.performSealed(ctx, rotateAgentSecret, act.flow, idem, s.keys.outcome(id, act.keyDigest(idem, "")), key.Organization,
		[]string{s.keys.agent(id), s.keys.events(id)}, key.Organization, to.Hash, to.Grace.Milliseconds(), s.auditAs(ctx, actorKey), to.revokes())
	if err != nil {
		return time.Time{}, s.released(ctx, c, idem, err)
	}
	if to.RevokeFamilies {
		if err := s.endRevokedFamilies(ctx, act.flow, id); err != nil {
			return time.Time{}, halfDone(err)
		}
	}
	return r.Time(0), r.Err
}

// Agents returns a page of the organization's agents, newest first. Errors: ErrInvalidAPIKey.
func (s *Store) Agents(ctx context.Context, key APIKey, q Query) (Page[Agent], error) {
	ix := index[Agent]{
		key:  s.keys.organizationAgents(key.Organization),
		late: s.lateIndex(key.Organization, s.keys.organizationAgents, s.keys.suspectAgents),
		read: s.readOrganizationIndex(key, s.keys.organizationAgents(key.Organization)),
		load: func(ctx context.Context, ids []uuid.UUID, _ time.Time) ([]*Agent, error) {
			return s.loadAgents(ctx, key.Organization, ids, listedAgentFields)
		},
		id:      func(a *Agent) uuid.UUID { return a.ID },
		matches: func(a *Agent) bool { return q.Status == "" || a.Status() == q.Status },
	}
	return page(ctx, s, ix, q)
}

// loadAgents returns the agents with these ids, in their order, with nil for one that does not exist or belongs to another
// organization. fields are agentFields or listedAgentFields.
func (s *Store) loadAgents(ctx context.Context, organization uuid.UUID, ids []uuid.UUID, fields []string) ([]*Agent, error) {
	replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, keysOf(ids, s.keys.agent), fields...)
	if err != nil {
		return nil, err
	}
	agents := make([]*Agent, len(ids))
	for i, r := range replies {
		if r.Optional(agentOrganization) != string(organization[:]) {
			continue
		}
		agent, err := readAgent(organization, ids[i], r)
		if err != nil {
			return nil, err
		}
		agents[i] = &agent
	}
	return agents, nil
}
