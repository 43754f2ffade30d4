package server

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
)

func (s *Server) agentRoutes(r *routes) {
	r.post("/v1/agents", redisstore.Admin, s.createAgent)
	r.get("/v1/agents", redisstore.Viewer, s.listAgents)
	r.get("/v1/agents/{id}", redisstore.Viewer, s.getAgent)
	r.patch("/v1/agents/{id}", redisstore.Admin, s.changeAgent)
	r.post("/v1/agents/{id}/revoke", redisstore.Operator, s.revokeAgent)
	r.delete("/v1/agents/{id}", redisstore.Admin, s.deleteAgent)
	r.post("/v1/agents/{id}/secret/rotate", redisstore.Admin, s.rotateAgentSecret)
}

type createAgentRequest struct {
	Name        optional[string]             `json:"name"`
	Scopes      optional[[]string]           `json:"scopes"`
	Description optional[string]             `json:"description"`
	Metadata    optional[jsontext.Value]     `json:"metadata"`
	Limits      optional[agentLimitsRequest] `json:"limits"`
	Secret      optional[bool]               `json:"secret"`
	agentCredentialsRequest
}

type agentAnswer struct {
	ID               uuid.UUID               `json:"id"`
	Organization     uuid.UUID               `json:"org_id"`
	Name             string                  `json:"name"`
	Scopes           []string                `json:"scopes"`
	Status           redisstore.Status       `json:"status"`
	Description      string                  `json:"description,omitzero"`
	Metadata         jsontext.Value          `json:"metadata"`
	Created          timestamp               `json:"created_at"`
	Revoked          timestamp               `json:"revoked_at,omitzero"`
	Suspended        timestamp               `json:"suspended_at,omitzero"`
	SuspensionReason string                  `json:"suspension_reason,omitzero"`
	Secret           string                  `json:"secret,omitzero"` // in the response to its creation only
	Limits           *redisstore.AgentLimits `json:"limits,omitzero"` // not in lists
	Usage            *agentUsage             `json:"usage,omitzero"`  // not in lists
	agentCredentials
}

func agentOf(a redisstore.Agent) agentAnswer {
	return agentAnswer{
		ID: a.ID, Organization: a.Organization, Name: a.Name, Scopes: a.Scopes, Status: a.Status(),
		Description: a.Description, Metadata: metadataOf(a.Metadata),
		Created: timestamp(a.Created), Revoked: timestamp(a.Revoked),
		Suspended: timestamp(a.Suspended), SuspensionReason: a.SuspensionReason,
		agentCredentials: agentCredentialsOf(a),
	}
}

func (s *Server) createAgent(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	var request createAgentRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.newAgent(s.webhooks.AllowPrivate)
	if err != nil {
		return err
	}
	secret := token.NewAgentSecret()
	idempotency, err := sealedIdempotency(ctx, "create agent", uuid.Nil, secret)
	if err != nil {
		return err
	}
	agent, err := s.store.CreateAgent(requestContext(ctx), key, wanted, token.Hash(secret), idempotency)
	s.reportReplay(ctx, idempotency)
	if err != nil {
		return err
	}
	if !isReplay(idempotency) {
		s.metrics.agentsCreated.Inc()
	}
	created := agentWithLimits(agent)
	if !wanted.NoSecret {
		created.Secret = credentialOf(secret, idempotency)
	}
	keepFromCaches(ctx)
	return answerCreated(ctx, "/v1/agents/"+agent.ID.String(), created)
}

func (r *createAgentRequest) newAgent(allowPrivate bool) (redisstore.Agent, error) {
	var v validation
	v.name(r.Name)
	v.require(r.Scopes.given, "scopes", "is required")
	v.scopes(r.Scopes.value)
	checkDescription(&v, r.Description.value)
	agent := redisstore.Agent{
		Name: r.Name.value, Scopes: r.Scopes.value, Description: r.Description.value,
		Metadata: v.object("metadata", r.Metadata, maxMetadata), Limits: r.Limits.value.limits(&v),
		NoSecret: !r.Secret.or(true),
	}
	r.agentCredentialsRequest.newAgent(&v, &agent, allowPrivate)
	return agent, v.err()
}

func (s *Server) getAgent(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	agent, err := s.store.Agent(requestContext(ctx), key, id)
	if err != nil {
		return err
	}
	s.hideQueries(ctx, key, &agent.JWKSURI)
	return answer(ctx, agentWithLimits(agent))
}

func (s *Server) listAgents(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	query, err := readQuery(ctx, []redisstore.Status{redisstore.Active, redisstore.Revoked})
	if err != nil {
		return err
	}
	if err := s.reserveAnswer(ctx, query.Limit*agentBytes); err != nil {
		return err
	}
	page, err := s.store.Agents(requestContext(ctx), key, query)
	if err != nil {
		return err
	}
	agents := make([]agentAnswer, len(page.Items))
	for i, agent := range page.Items {
		agents[i] = agentOf(agent)
	}
	announceNext(ctx, page.Next)
	return answer(ctx, agents)
}

type revokedAgentAnswer struct {
	ID      uuid.UUID         `json:"id"`
	Status  redisstore.Status `json:"status"`
	Revoked timestamp         `json:"revoked_at"`
}

func (s *Server) revokeAgent(ctx *fasthttp.RequestCtx) error {
	return s.revokeBy(ctx, s.store.RevokeAgent)
}

// deleteAgent revokes the agent and deletes its record after the retention time.
func (s *Server) deleteAgent(ctx *fasthttp.RequestCtx) error {
	return s.revokeBy(ctx, s.store.DeleteAgent)
}

func (s *Server) revokeBy(ctx *fasthttp.RequestCtx,
	revoke func(context.Context, redisstore.APIKey, uuid.UUID) (time.Time, error)) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	if err := decode(ctx, &nothing{}); err != nil {
		return err
	}
	revoked, err := revoke(requestContext(ctx), key, id)
	if err != nil {
		return err
	}
	s.metrics.agentsRevoked.Inc()
	return answer(ctx, revokedAgentAnswer{id, redisstore.Revoked, timestamp(revoked)})
}

type secretRotation struct {
	rotation
	RevokeFamilies optional[bool] `json:"revoke_families"`
}

type rotatedSecretAnswer struct {
	ID              uuid.UUID `json:"id"`
	Secret          string    `json:"secret"`
	PreviousExpires timestamp `json:"previous_expires_at"`
}

func (s *Server) rotateAgentSecret(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	var request secretRotation
	if err := decode(ctx, &request); err != nil {
		return err
	}
	grace, err := request.duration(defaultSecretGrace)
	if err != nil {
		return err
	}
	secret := token.NewAgentSecret()
	idempotency, err := sealedIdempotency(ctx, "rotate secret", id, secret)
	if err != nil {
		return err
	}
	previousExpires, err := s.store.RotateAgentSecret(requestContext(ctx), key, id,
		redisstore.SecretRotation{Hash: token.Hash(secret), Grace: grace, RevokeFamilies: request.RevokeFamilies.value}, idempotency)
	s.reportReplay(ctx, idempotency)
	if err != nil {
		return err
	}
	keepFromCaches(ctx)
	return answer(ctx, rotatedSecretAnswer{id, credentialOf(secret, idempotency), timestamp(previousExpires)})
}
