package budgets

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// byCreator adapts a handler to the creation of sessions: an organization calls it, or an agent that creates a child of its own.
func (h *Handlers) byCreator(create func(*fasthttp.RequestCtx, access.Caller) error) web.Handler {
	either := h.Guard.ByEither(create)
	return func(ctx *fasthttp.RequestCtx) error {
		_, hasToken := access.AccessToken(ctx)
		if hasToken && len(ctx.Request.Header.PeekCanonical(web.CanonicalAPIKey)) == 0 {
			return either(ctx)
		}
		caller, err := access.KeyCaller(ctx)
		if err != nil {
			return err
		}
		return create(ctx, caller)
	}
}

// checkCreator refuses an agent that wants a root session, or one that observes, or below a session that its token does not reach, or
// may not delegate, or with scopes that its token does not hold.
func checkCreator(c access.Caller, n redisstore.NewSession) error {
	if c.Token != nil && n.Parent == uuid.Nil {
		return access.ErrMissingKey
	}
	if c.Token != nil && n.Observes {
		return web.Invalid("enforcement", "must be enforce, because only an API key may let a session observe")
	}
	if err := c.MayActIn(n.Parent); err != nil {
		return err
	}
	if err := c.MayUse(access.ScopeDelegate); err != nil {
		return err
	}
	for _, scope := range n.Scopes {
		if err := c.MayUse(scope); err != nil {
			return err
		}
	}
	return nil
}

// sessionTreeAnswer is a session with its descendants.
type sessionTreeAnswer struct {
	SessionAnswer
	Children  []sessionTreeAnswer `json:"children"`
	Truncated bool                `json:"children_truncated,omitzero"`
}

func sessionTreeOf(v *redisstore.SessionTree) sessionTreeAnswer {
	a := sessionTreeAnswer{SessionOf(v.Session), make([]sessionTreeAnswer, len(v.Children)), v.Truncated}
	for i, child := range v.Children {
		a.Children[i] = sessionTreeOf(child)
	}
	return a
}

// mostTreeBytes is about how large the response may be: 800 bytes for each session, and the texts.
const mostTreeBytes = redisstore.MostInTree*800 + redisstore.MostTreeText

// getSessionTree returns a session with its descendants, of whatever agents.
func (h *Handlers) getSessionTree(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	if err := h.Front.ReserveAnswer(ctx, mostTreeBytes); err != nil {
		return err
	}
	tree, err := h.Store.Tree(web.RequestContext(ctx), caller.Caller, id)
	return web.AnswerOf(ctx, sessionTreeOf, tree, err)
}
