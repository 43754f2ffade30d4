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
	r.Post("/v1/agents/suspend", redisstore.Operator, h.suspendAgents)
	r.Post("/v1/agents/resume", redisstore.Operator, h.resumeAgents)
	r.Post("/v1/agents/{id}/suspend", redisstore.Operator, h.suspendAgent)
	r.Post("/v1/agents/{id}/resume", redisstore.Operator, h.resumeAgent)
}

func (h *Handlers) suspendAgent(ctx *fasthttp.RequestCtx) error {
	return h.switchAgent(ctx, h.Store.SuspendAgent)
}

func (h *Handlers) resumeAgent(ctx *fasthttp.RequestCtx) error {
	return h.switchAgent(ctx, h.Store.ResumeAgent)
}

// switchAgent suspends or resumes one agent.
func (h *Handlers) switchAgent(ctx *fasthttp.RequestCtx,
	change func(context.Context, redisstore.APIKey, uuid.UUID, string) (redisstore.Agent, error)) error {
	key, id, err := access.KeyAndID(ctx)
	if err != nil {
		return err
	}
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

func (h *Handlers) suspendAgents(ctx *fasthttp.RequestCtx) error {
	suspended, err := h.switchAgents(ctx, h.Store.SuspendAgents)
	if err != nil {
		return err
	}
	return web.Answer(ctx, suspendedAgentsAnswer{suspended})
}

func (h *Handlers) resumeAgents(ctx *fasthttp.RequestCtx) error {
	resumed, err := h.switchAgents(ctx, h.Store.ResumeAgents)
	if err != nil {
		return err
	}
	return web.Answer(ctx, resumedAgentsAnswer{resumed})
}

// switchAgents suspends or resumes all agents of the organization, and returns how many.
func (h *Handlers) switchAgents(ctx *fasthttp.RequestCtx,
	change func(context.Context, redisstore.APIKey, string) (int64, error)) (int64, error) {
	key, err := access.OrganizationKey(ctx)
	if err != nil {
		return 0, err
	}
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
