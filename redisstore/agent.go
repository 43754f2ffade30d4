package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
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
	indexAgent        = kernel.NewScript("identity/index_agent", writes)
	claimAgent        = kernel.NewScript("identity/claim_and_index_agent", writes)
	createAgent       = kernel.NewSealedScript("identity/create_agent")
	replayAgent       = kernel.NewSealedScript("kernel/replay")
	revokeAgent       = kernel.NewScript("identity/revoke_agent", writes)
	deleteAgent       = kernel.NewScript("identity/delete_agent", writes)
	rotateAgentSecret = kernel.NewSealedScript("identity/rotate_agent_secret")
)

// CreateAgent creates an agent of the key's organization and returns it with its id and creation time. Of a it reads name,
// scopes, description, metadata, limits and what it authenticates with; the hash is ignored when it has no secret. idem is nil for no idempotency key. Errors: ErrInvalidAPIKey, *QuotaError, *RateError;
// with an idempotency key ErrIdempotencyKeyReused and ErrSealed.
func (s *Store) CreateAgent(ctx context.Context, key APIKey, a Agent, secretHash [32]byte, idem *Idempotency) (Agent, error) {
	a.ID, a.Organization = NewRootID(), key.Organization
	if idem != nil {
		a.ID = kernel.IDIn(idem.Cell(string(key.Organization[:]))) // the same cell each time: the first agent's cell has the outcome
		idem.At, idem.Bounded = a.ID, true
	}
	act := kernel.Actor{Organization: key.Organization, Agent: a.ID, Flow: s.core.Proven.Flow(key)}
	c := &creation{
		key: key, id: a.ID, index: s.keys.OrganizationAgents(key.Organization), enter: indexAgent, claim: claimAgent,
		counted: kernel.AgentsHeld, idempotency: idem, outcome: s.keys.Outcome(a.ID, act.KeyDigest(idem, "")),
	}
	held, err := s.reserveCreation(ctx, c, agentDemand(key.Organization, a, strings.Join(a.Scopes, " ")))
	if err != nil {
		s.core.FreeClaim(ctx, Caller{Key: &key}, idem, err)
		return Agent{}, err
	}
	created, err := s.writeAgent(ctx, act, a, secretHash, c)
	replayed := idem.IsReplay()
	held.Finish(err, replayed)
	switch {
	case c.entered && createdNothing(err, replayed):
		s.core.Drop(ctx, c.index, kernel.Members{}, a.ID)
	case err == nil && !replayed:
		s.pruneAfterAgent(ctx, key.Organization)
	}
	return created, err
}

func (s *Store) writeAgent(ctx context.Context, act kernel.Actor, a Agent, secretHash [32]byte, c *creation) (Agent, error) {
	idem := c.idempotency
	r, err := s.create(ctx, c, createAgent, replayAgent, func(sc kernel.KeyedScript) (*reply, error) {
		return s.core.PerformSealed(ctx, sc, act.Flow, idem, c.outcome, act.Organization,
			[]string{s.keys.Agent(a.ID), s.keys.Events(a.ID), s.keys.AgentOpen(a.ID)},
			act.Organization, a.Name, strings.Join(a.Scopes, " "), a.Description, a.Metadata, a.secretField(secretHash), s.core.AuditAs(ctx, kernel.ActorKey),
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
	if idem.IsReplay() {
		a.Metadata, err = s.core.FirstMetadata(ctx, act.Flow, s.keys.Agent(a.ID), "metadata", a.Metadata)
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
	if _, err := s.core.Authenticate(ctx, s.core.Proven.Urgent(key), key); err != nil {
		return time.Time{}, err
	}
	return timeFrom(s.client.Run(ctx, s.core.Proven.Urgent(key), revokeAgent, []string{s.keys.Agent(id), s.keys.Events(id)},
		key.Organization, s.core.AuditAs(ctx, kernel.ActorKey)))
}

// timeFrom reads the reply of a script that returns a time.
func timeFrom(r *reply, err error) (time.Time, error) {
	if err != nil {
		return time.Time{}, err
	}
	return r.Time(0), r.Err
}

// DeleteAgent revokes an agent as RevokeAgent does. Its record reads as revoked for Config.Retention and then expires.
// Errors: ErrInvalidAPIKey, ErrUnknownAgent.
func (s *Store) DeleteAgent(ctx context.Context, key APIKey, id uuid.UUID) (time.Time, error) {
	if _, err := s.core.Authenticate(ctx, s.core.Proven.Urgent(key), key); err != nil {
		return time.Time{}, err
	}
	agents, err := s.loadAgents(ctx, key.Organization, []uuid.UUID{id}, listedAgentFields)
	if err == nil && agents[0] != nil {
		err = s.rememberDeleted(ctx, s.core.Proven.Urgent(key), key.Organization, id, mostDeletedAgents)
	}
	if err != nil {
		return time.Time{}, err
	}
	return timeFrom(s.client.Run(ctx, s.core.Proven.Urgent(key), deleteAgent, []string{s.keys.Agent(id), s.keys.Events(id)},
		key.Organization, s.deletedLifetime(), s.core.AuditAs(ctx, kernel.ActorKey)))
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

// RotateAgentSecret rotates the agent's secret, and returns when the one before ends. idem is nil for no idempotency key. Tokens that
// are issued during the call stay live, and a repetition under its idempotency key revokes none that were issued since. Errors:
// ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked; with an idempotency key ErrIdempotencyKeyReused and ErrSealed; after
// ErrOutcomeUnknown the secret may be replaced, and some of the tokens be revoked.
func (s *Store) RotateAgentSecret(ctx context.Context, key APIKey, id uuid.UUID, to SecretRotation, idem *Idempotency) (time.Time, error) {
	c := Caller{Key: &key}.Urgently()
	idem.SetObject(id)
	idem.SetBounded()
	err := s.core.Authorize(ctx, c, idem)
	if kernel.IsRefusedCreation(err) {
		idem = nil // an organization over its quota may still rotate; its idempotency key is not stored
		err = s.core.Authorize(ctx, c, nil)
	}
	if err != nil {
		return time.Time{}, err
	}
	act := kernel.Actor{Organization: key.Organization, Agent: id, Flow: s.core.Proven.Urgent(key)}
	r, err := s.core.PerformSealed(ctx, rotateAgentSecret, act.Flow, idem, s.keys.Outcome(id, act.KeyDigest(idem, "")), key.Organization,
		[]string{s.keys.Agent(id), s.keys.Events(id)}, key.Organization, to.Hash, to.Grace.Milliseconds(), s.core.AuditAs(ctx, kernel.ActorKey), oneIf(to.RevokeFamilies))
	if err != nil {
		s.core.FreeClaim(ctx, c, idem, err)
		return time.Time{}, err
	}
	if to.RevokeFamilies {
		if err := s.endRevokedFamilies(ctx, act.Flow, id); err != nil {
			return time.Time{}, kernel.HalfDone(err)
		}
	}
	return r.Time(0), r.Err
}

// Agents returns a page of the organization's agents, newest first. Errors: ErrInvalidAPIKey.
func (s *Store) Agents(ctx context.Context, key APIKey, q Query) (Page[Agent], error) {
	ix := s.agentsOf(key.Organization)
	ix.Read = s.core.ReadOrganizationIndex(key, ix.Key)
	ix.Matches = func(a *Agent) bool { return q.Status == "" || a.Status() == q.Status }
	return kernel.ReadPage(ctx, s.core, ix, q)
}

// agentsOf is the organization's index of agents.
func (s *Store) agentsOf(organization uuid.UUID) kernel.Index[Agent] {
	return kernel.Index[Agent]{
		Key:  s.keys.OrganizationAgents(organization),
		Late: s.core.LateIndex(organization, s.keys.OrganizationAgents, s.keys.SuspectAgents),
		Load: func(ctx context.Context, ids []uuid.UUID, _ time.Time) ([]*Agent, error) {
			return s.loadAgents(ctx, organization, ids, listedAgentFields)
		},
	}
}

// loadAgents returns the agents with these ids, in their order, with nil for one that does not exist or belongs to another
// organization. fields are agentFields or listedAgentFields.
func (s *Store) loadAgents(ctx context.Context, organization uuid.UUID, ids []uuid.UUID, fields []string) ([]*Agent, error) {
	replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, kernel.Map(ids, s.keys.Agent), fields...)
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

// The fields of an agent by their index in the replies of identity/block/agent_state.lua.
const (
	agentOrganization = iota
	agentName
	agentScopes
	agentDescription
	agentMetadata
	agentCreated
	agentRevoked
	agentSuspended
	agentSuspensionReason
	agentRestricted
	agentMaxOpenSessions
	agentNoSecret
	agentAudiences // this one and those behind it are not read for lists, because they may be long
	agentJWKS
	agentJWKSURI
)

// agentFields are the fields of an agent's hash in this order.
var agentFields = []string{
	agentOrganization: "organization", agentName: "name", agentScopes: "scopes", agentDescription: "description",
	agentMetadata: "metadata", agentCreated: "created", agentRevoked: "revoked", agentSuspended: "suspended",
	agentSuspensionReason: "suspension_reason", agentRestricted: "restricted", agentMaxOpenSessions: "max_open_sessions",
	agentNoSecret: "no_secret", agentAudiences: "audiences", agentJWKS: "jwks", agentJWKSURI: "jwks_uri",
}

// listedAgentFields are those of an agent in a list.
var listedAgentFields = agentFields[:agentAudiences]

// readAgent reads an agent of the organization from its agentFields or listedAgentFields.
func readAgent(organization, id uuid.UUID, r *reply) (Agent, error) {
	a := Agent{
		ID: id, Organization: organization, Name: r.Text(agentName), Scopes: strings.Fields(r.Text(agentScopes)),
		Description: r.Optional(agentDescription), Metadata: r.Optional(agentMetadata),
		Created: r.Time(agentCreated), Revoked: r.TimeOrZero(agentRevoked),
		Suspended: r.TimeOrZero(agentSuspended), SuspensionReason: r.Optional(agentSuspensionReason),
		DPoPRequired: hasFlag(r.Optional(agentRestricted), 'p'), NoSecret: r.Optional(agentNoSecret) != "",
	}
	if len(r.Values) > len(listedAgentFields) {
		a.Audiences, a.JWKS, a.JWKSURI = audiencesFrom(r.Optional(agentAudiences)), r.Optional(agentJWKS), r.Optional(agentJWKSURI)
	}
	a.Limits, a.counted = readAgentLimits(r, r.Optional(agentRestricted), r.Optional(agentMaxOpenSessions))
	return a, r.Err
}

// hasFlag says whether an agent's field restricted has a flag; see identity/include/restrict_agent.lua.
func hasFlag(restricted string, flag byte) bool {
	flags, _, _ := strings.Cut(restricted, " ")
	return strings.IndexByte(flags, flag) >= 0
}

// noAudiences is the field audiences of an agent whose tokens are for the issuer only. It is no URI.
const noAudiences = "-"

// audiencesText returns the field audiences, "" for any.
func audiencesText(audiences []string) string {
	if audiences != nil && len(audiences) == 0 {
		return noAudiences
	}
	return strings.Join(audiences, " ")
}

func audiencesFrom(text string) []string {
	switch text {
	case "":
		return nil
	case noAudiences:
		return []string{}
	}
	return strings.Fields(text)
}
