package identity

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) agentRoutes(r *web.Routes) {
	r.Post("/v1/agents", redisstore.Admin, access.ByKey(h.createAgent))
	r.Get("/v1/agents", redisstore.Viewer, access.ByKey(h.listAgents))
	r.Get("/v1/agents/{id}", redisstore.Viewer, access.ByKeyAt(h.getAgent))
	r.Patch("/v1/agents/{id}", redisstore.Admin, access.ByKeyAt(h.changeAgent))
	r.Post("/v1/agents/{id}/revoke", redisstore.Operator, access.ByKeyAt(h.revokeAgent))
	r.Delete("/v1/agents/{id}", redisstore.Admin, access.ByKeyAt(h.deleteAgent))
	r.Post("/v1/agents/{id}/secret/rotate", redisstore.Admin, access.ByKeyAt(h.rotateAgentSecret))
}

type createAgentRequest struct {
	Name        web.Optional[string]             `json:"name"`
	Scopes      web.Optional[[]string]           `json:"scopes"`
	Description web.Optional[string]             `json:"description"`
	Metadata    web.Optional[jsontext.Value]     `json:"metadata"`
	Limits      web.Optional[agentLimitsRequest] `json:"limits"`
	Secret      web.Optional[bool]               `json:"secret"`
	agentCredentialsRequest
}

// AgentAnswer is an agent in a response.
type AgentAnswer struct {
	ID               uuid.UUID               `json:"id"`
	Organization     uuid.UUID               `json:"org_id"`
	Name             string                  `json:"name"`
	Scopes           []string                `json:"scopes"`
	Status           redisstore.Status       `json:"status"`
	Description      string                  `json:"description,omitzero"`
	Metadata         jsontext.Value          `json:"metadata"`
	Created          web.Timestamp           `json:"created_at"`
	Revoked          web.Timestamp           `json:"revoked_at,omitzero"`
	Suspended        web.Timestamp           `json:"suspended_at,omitzero"`
	SuspensionReason string                  `json:"suspension_reason,omitzero"`
	Secret           string                  `json:"secret,omitzero"` // in the response to its creation only
	Limits           *redisstore.AgentLimits `json:"limits,omitzero"` // not in lists
	Usage            *AgentUsage             `json:"usage,omitzero"`  // not in lists
	AgentCredentials
}

// AgentOf returns an agent as lists show it, without limits and usage.
func AgentOf(a redisstore.Agent) AgentAnswer {
	return AgentAnswer{
		ID: a.ID, Organization: a.Organization, Name: a.Name, Scopes: a.Scopes, Status: a.Status(),
		Description: a.Description, Metadata: web.MetadataOf(a.Metadata),
		Created: web.Timestamp(a.Created), Revoked: web.Timestamp(a.Revoked),
		Suspended: web.Timestamp(a.Suspended), SuspensionReason: a.SuspensionReason,
		AgentCredentials: agentCredentialsOf(a),
	}
}

func (h *Handlers) createAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	wanted, err := web.Decoded(ctx, h.newAgent)
	if err != nil {
		return err
	}
	secret := token.NewAgentSecret()
	idempotency, err := web.SealedIdempotency(ctx, "create agent", uuid.Nil, secret)
	if err != nil {
		return err
	}
	agent, err := h.Store.CreateAgent(web.RequestContext(ctx), key, wanted, token.Hash(secret), idempotency)
	if err != nil {
		return err
	}
	if !idempotency.IsReplay() {
		h.counted.agentsCreated.Inc()
	}
	created := agentWithLimits(agent)
	if !wanted.NoSecret {
		created.Secret = web.CredentialOf(secret, idempotency)
	}
	web.KeepFromCaches(ctx)
	return web.AnswerCreated(ctx, "/v1/agents/"+agent.ID.String(), created)
}

func (h *Handlers) newAgent(r *createAgentRequest) (redisstore.Agent, error) {
	var v web.Validation
	v.Name(r.Name)
	v.Require(r.Scopes.Given, "scopes", "is required")
	v.Scopes(r.Scopes.Value)
	checkDescription(&v, r.Description.Value)
	agent := redisstore.Agent{
		Name: r.Name.Value, Scopes: r.Scopes.Value, Description: r.Description.Value,
		Metadata: v.Object("metadata", r.Metadata, web.MaxMetadata), Limits: r.Limits.Value.limits(&v),
		NoSecret: !r.Secret.Or(true),
	}
	r.agentCredentialsRequest.newAgent(&v, &agent, h.AllowPrivate)
	return agent, v.Err()
}

func (h *Handlers) getAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	agent, err := h.Store.Agent(web.RequestContext(ctx), key, id)
	if err != nil {
		return err
	}
	h.hideQueries(ctx, key, &agent.JWKSURI)
	return web.Answer(ctx, agentWithLimits(agent))
}

func (h *Handlers) listAgents(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	query, err := web.ReadQuery(ctx, []redisstore.Status{redisstore.Active, redisstore.Revoked})
	if err != nil {
		return err
	}
	if err := h.Front.ReserveAnswer(ctx, query.Limit*web.AgentBytes); err != nil {
		return err
	}
	page, err := h.Store.Agents(web.RequestContext(ctx), key, query)
	return web.AnswerPage(ctx, AgentOf, page, err)
}

// RevokedAgentAnswer is the response to a revocation or deletion.
type RevokedAgentAnswer struct {
	ID      uuid.UUID         `json:"id"`
	Status  redisstore.Status `json:"status"`
	Revoked web.Timestamp     `json:"revoked_at"`
}

func (h *Handlers) revokeAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	return h.revokeBy(ctx, key, id, h.Store.RevokeAgent)
}

// deleteAgent revokes the agent and deletes its record after the retention time.
func (h *Handlers) deleteAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	return h.revokeBy(ctx, key, id, h.Store.DeleteAgent)
}

func (h *Handlers) revokeBy(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID,
	revoke func(context.Context, redisstore.APIKey, uuid.UUID) (time.Time, error)) error {
	if err := web.Decode(ctx, &web.Nothing{}); err != nil {
		return err
	}
	revoked, err := revoke(web.RequestContext(ctx), key, id)
	if err != nil {
		return err
	}
	h.counted.agentsRevoked.Inc()
	return web.Answer(ctx, RevokedAgentAnswer{id, redisstore.Revoked, web.Timestamp(revoked)})
}

type secretRotation struct {
	web.Rotation
	RevokeFamilies web.Optional[bool] `json:"revoke_families"`
}

// RotatedSecretAnswer is the response to a rotation of an agent's secret.
type RotatedSecretAnswer struct {
	ID              uuid.UUID     `json:"id"`
	Secret          string        `json:"secret"`
	PreviousExpires web.Timestamp `json:"previous_expires_at"`
}

func (h *Handlers) rotateAgentSecret(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	var request secretRotation
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	grace, err := request.Duration(web.DefaultSecretGrace)
	if err != nil {
		return err
	}
	secret := token.NewAgentSecret()
	idempotency, err := web.SealedIdempotency(ctx, "rotate secret", id, secret)
	if err != nil {
		return err
	}
	previousExpires, err := h.Store.RotateAgentSecret(web.RequestContext(ctx), key, id,
		redisstore.SecretRotation{Hash: token.Hash(secret), Grace: grace, RevokeFamilies: request.RevokeFamilies.Value}, idempotency)
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	return web.Answer(ctx, RotatedSecretAnswer{id, web.CredentialOf(secret, idempotency), web.Timestamp(previousExpires)})
}
