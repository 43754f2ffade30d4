package server

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

func (s *Server) suspendAgent(ctx *fasthttp.RequestCtx) error {
	return s.restrictAgent(ctx, s.store.SuspendAgent)
}

func (s *Server) resumeAgent(ctx *fasthttp.RequestCtx) error {
	return s.restrictAgent(ctx, s.store.ResumeAgent)
}

func (s *Server) restrictAgent(ctx *fasthttp.RequestCtx,
	restrict func(context.Context, redisstore.APIKey, uuid.UUID, string) (redisstore.Agent, error)) error {
	key, id, reason, err := s.suspension(ctx)
	if err != nil {
		return err
	}
	agent, err := restrict(web.RequestContext(ctx), key, id, reason)
	if err != nil {
		return err
	}
	s.hideQueries(ctx, key, &agent.JWKSURI)
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

func (s *Server) suspendAgents(ctx *fasthttp.RequestCtx) error {
	suspended, err := s.restrictAgents(ctx, s.store.SuspendAgents)
	if err != nil {
		return err
	}
	return web.Answer(ctx, suspendedAgentsAnswer{suspended})
}

func (s *Server) resumeAgents(ctx *fasthttp.RequestCtx) error {
	resumed, err := s.restrictAgents(ctx, s.store.ResumeAgents)
	if err != nil {
		return err
	}
	return web.Answer(ctx, resumedAgentsAnswer{resumed})
}

// restrictAgents suspends or resumes all agents of the organization, and returns how many.
func (s *Server) restrictAgents(ctx *fasthttp.RequestCtx,
	restrict func(context.Context, redisstore.APIKey, string) (int64, error)) (int64, error) {
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
	checkSuspensionReason(&v, request.Reason.Value)
	if err := v.Err(); err != nil {
		return 0, err
	}
	done, err := restrict(web.RequestContext(ctx), key, request.Reason.Value)
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
