package server

import (
	"context"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

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
