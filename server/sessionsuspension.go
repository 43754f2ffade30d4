package server

import (
	"context"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
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
	session, err := restrict(web.RequestContext(ctx), key, id, reason)
	if err != nil {
		return asConflict(err)
	}
	return web.Answer(ctx, sessionOf(session))
}
