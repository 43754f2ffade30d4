package server

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

func (s *Server) suspensionRoutes(r *routes) {
	r.post("/v1/agents/suspend", s.suspendAgents)
	r.post("/v1/agents/resume", s.resumeAgents)
	r.post("/v1/agents/{id}/suspend", s.suspendAgent)
	r.post("/v1/agents/{id}/resume", s.resumeAgent)
	for _, prefix := range []string{"", "/v1"} {
		r.post(prefix+"/sessions/{id}/suspend", s.suspendSession)
		r.post(prefix+"/sessions/{id}/resume", s.resumeSession)
	}
}

const maxSuspensionReason = 500 // characters

type suspensionRequest struct {
	Reason optional[string] `json:"reason"`
}

// suspension returns the key, the id and the reason of a request to suspend or resume one object.
func (s *Server) suspension(ctx *fasthttp.RequestCtx) (redisstore.APIKey, uuid.UUID, string, error) {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return redisstore.APIKey{}, uuid.Nil, "", err
	}
	var request suspensionRequest
	if err := decode(ctx, &request); err != nil {
		return redisstore.APIKey{}, uuid.Nil, "", err
	}
	var v validation
	v.suspensionReason(request.Reason.value)
	return key, id, request.Reason.value, v.err()
}

func (v *validation) suspensionReason(reason string) {
	v.require(utf8.RuneCountInString(reason) <= maxSuspensionReason, "reason", "must have at most 500 characters")
}

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
	agent, err := restrict(requestContext(ctx), key, id, reason)
	if err != nil {
		return err
	}
	s.hideQueries(ctx, key, &agent.JWKSURI)
	return answer(ctx, agentWithLimits(agent))
}

func (s *Server) suspendSession(ctx *fasthttp.RequestCtx) error {
	return s.restrictSession(ctx, s.store.SuspendSession)
}

func (s *Server) resumeSession(ctx *fasthttp.RequestCtx) error {
	return s.restrictSession(ctx, s.store.ResumeSession)
}

func (s *Server) restrictSession(ctx *fasthttp.RequestCtx,
	restrict func(context.Context, redisstore.APIKey, uuid.UUID, string) (redisstore.Session, error)) error {
	key, id, reason, err := s.suspension(ctx)
	if err != nil {
		return err
	}
	session, err := restrict(requestContext(ctx), key, id, reason)
	if err != nil {
		return asConflict(err)
	}
	return answer(ctx, sessionOf(session))
}

type allAgentsRequest struct {
	All    optional[bool]   `json:"all"`
	Reason optional[string] `json:"reason"`
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
	return answer(ctx, suspendedAgentsAnswer{suspended})
}

func (s *Server) resumeAgents(ctx *fasthttp.RequestCtx) error {
	resumed, err := s.restrictAgents(ctx, s.store.ResumeAgents)
	if err != nil {
		return err
	}
	return answer(ctx, resumedAgentsAnswer{resumed})
}

// restrictAgents suspends or resumes all agents of the organization, and returns how many.
func (s *Server) restrictAgents(ctx *fasthttp.RequestCtx,
	restrict func(context.Context, redisstore.APIKey, string) (int64, error)) (int64, error) {
	key, err := organizationKey(ctx)
	if err != nil {
		return 0, err
	}
	var request allAgentsRequest
	if err := decode(ctx, &request); err != nil {
		return 0, err
	}
	var v validation
	v.require(request.All.value, "all", "must be true")
	v.suspensionReason(request.Reason.value)
	if err := v.err(); err != nil {
		return 0, err
	}
	done, err := restrict(requestContext(ctx), key, request.Reason.value)
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
