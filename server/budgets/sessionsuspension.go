package budgets

import (
	"context"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) suspensionRoutes(r *web.Routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.Post(prefix+"/sessions/{id}/suspend", redisstore.Operator, h.suspendSession)
		r.Post(prefix+"/sessions/{id}/resume", redisstore.Operator, h.resumeSession)
	}
}

func (h *Handlers) suspendSession(ctx *fasthttp.RequestCtx) error {
	return h.switchSession(ctx, h.Store.SuspendSession)
}

func (h *Handlers) resumeSession(ctx *fasthttp.RequestCtx) error {
	return h.switchSession(ctx, h.Store.ResumeSession)
}

// switchSession suspends or resumes a session.
func (h *Handlers) switchSession(ctx *fasthttp.RequestCtx,
	change func(context.Context, redisstore.APIKey, uuid.UUID, string) (redisstore.Session, error)) error {
	key, id, err := access.KeyAndID(ctx)
	if err != nil {
		return err
	}
	reason, err := web.DecodeReason(ctx)
	if err != nil {
		return err
	}
	session, err := change(web.RequestContext(ctx), key, id, reason)
	if err != nil {
		return AsConflict(err)
	}
	return web.Answer(ctx, SessionOf(session))
}
