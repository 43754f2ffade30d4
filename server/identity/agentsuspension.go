package identity

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) suspensionRoutes(r *web.Routes) {
	r.Post("/v1/agents/suspend", redisstore.Operator, access.ByKey(h.suspendAgents))
	r.Post("/v1/agents/resume", redisstore.Operator, access.ByKey(h.resumeAgents))
	r.Post("/v1/agents/{id}/suspend", redisstore.Operator, access.ByKeyAt(h.suspendAgent))
	r.Post("/v1/agents/{id}/resume", redisstore.Operator, access.ByKeyAt(h.resumeAgent))
}

func (h *Handlers) suspendAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	return h.switchAgent(ctx, key, id, h.Store.SuspendAgent)
}

func (h *Handlers) resumeAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	return h.switchAgent(ctx, key, id, h.Store.ResumeAgent)
}

// switchAgent suspends or resumes one agent.
func (h *Handlers) switchAgent(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID,
	change func(context.Context, redisstore.APIKey, uuid.UUID, string) (redisstore.Agent, error)) error {
	reason, err := web.DecodeReason(ctx)
	if err != nil {
		return err
	}
	agent, err := change(web.RequestContext(ctx), key, id, reason)
	if err != nil {
		return err
	}
	h.hideQueries(ctx, key, &agent.JWKSURI)
	return web.Answer(ctx, agentWithLimits(agent))
}

type allAgentsRequest struct {
	All    web.Optional[bool]   `json:"all"`
	Reason web.Optional[string] `json:"reason"`
}

type suspendedAgentsAnswer struct {
	Suspended int64 `json:"suspended"`
}

type resumedAgentsAnswer struct {
	Resumed int64 `json:"resumed"`
}

func (h *Handlers) suspendAgents(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	suspended, err := h.switchAgents(ctx, key, h.Store.SuspendAgents)
	if err != nil {
		return err
	}
	return web.Answer(ctx, suspendedAgentsAnswer{suspended})
}

func (h *Handlers) resumeAgents(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	resumed, err := h.switchAgents(ctx, key, h.Store.ResumeAgents)
	if err != nil {
		return err
	}
	return web.Answer(ctx, resumedAgentsAnswer{resumed})
}

// switchAgents suspends or resumes all agents of the organization, and returns how many.
func (h *Handlers) switchAgents(ctx *fasthttp.RequestCtx, key redisstore.APIKey,
	change func(context.Context, redisstore.APIKey, string) (int64, error)) (int64, error) {
	var request allAgentsRequest
	if err := web.Decode(ctx, &request); err != nil {
		return 0, err
	}
	var v web.Validation
	v.Require(request.All.Value, "all", "must be true")
	v.Reason(request.Reason.Value)
	if err := v.Err(); err != nil {
		return 0, err
	}
	done, err := change(web.RequestContext(ctx), key, request.Reason.Value)
	if done > 0 {
		err = halfDone(err)
	}
	return done, err
}

// halfDone turns the failure of a second step into ErrOutcomeUnknown, because the first step has changed something.
func halfDone(err error) error {
	if errors.Is(err, redisstore.ErrUnavailable) {
		return fmt.Errorf("%w: %v", redisstore.ErrOutcomeUnknown, err) // not wrapped: ErrUnavailable would promise that nothing was changed
	}
	return err
}
