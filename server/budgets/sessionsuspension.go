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
		r.Post(prefix+"/sessions/{id}/suspend", redisstore.Operator, access.ByKeyAt(h.suspendSession))
		r.Post(prefix+"/sessions/{id}/resume", redisstore.Operator, access.ByKeyAt(h.resumeSession))
	}
}

func (h *Handlers) suspendSession(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	return h.switchSession(ctx, key, id, h.Store.SuspendSession)
}

func (h *Handlers) resumeSession(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	return h.switchSession(ctx, key, id, h.Store.ResumeSession)
}

// switchSession suspends or resumes a session.
func (h *Handlers) switchSession(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID,
	change func(context.Context, redisstore.APIKey, uuid.UUID, string) (redisstore.Session, error)) error {
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
