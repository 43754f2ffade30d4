package server

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

// asked is one request as those see it who watch the service: its metrics, its access log, its traces.
type asked struct {
	began time.Time
	route string // as routes names it, without what the client chose; "" when there is none at its path
	// organization and agent are who asks, as the credential says that was read; its being live is for the store to say.
	organization uuid.UUID
	agent        uuid.UUID
	counts       *routeCounts // of the route; nil as long as there is none
	code         string       // of the problem that is answered; "" for none
	turnedAway   bool         // with others, too many to tell of each

	shared bool            // its answer's body is one for all, and takes no memory of its own
	unread bool            // it could not be read, or not to its end: fasthttp then takes it for a GET
	traced context.Context // with the request's span; nil when there is none
}

type askedKey struct{}

var askedPool = sync.Pool{New: func() any { return new(asked) }}

// beginAsked is called once for each request, before anything else; endAsked when its answer is complete.
func beginAsked(ctx *fasthttp.RequestCtx) {
	a := askedPool.Get().(*asked)
	*a = asked{began: time.Now()}
	ctx.SetUserValue(askedKey{}, a)
}

// askedOf returns the request as it is seen. It is not to be kept beyond the request.
func askedOf(ctx *fasthttp.RequestCtx) *asked {
	if a, begun := ctx.UserValue(askedKey{}).(*asked); begun {
		return a
	}
	return new(asked) // of a handler that is called by itself
}

// askedBy notes whose credential the request has shown, once it is seen to be genuine.
func askedBy(ctx *fasthttp.RequestCtx, organization, agent uuid.UUID) {
	a := askedOf(ctx)
	a.organization, a.agent = organization, agent
}

// endAsked tells those who watch.
func (s *Server) endAsked(ctx *fasthttp.RequestCtx) {
	a, begun := ctx.UserValue(askedKey{}).(*asked)
	if !begun {
		return
	}
	s.counts.requests.request(ctx, a)
	if a.traced != nil {
		endTrace(ctx, a)
	}
	if s.accessLog != nil {
		s.accessLog.note(s, ctx, a)
	}
	ctx.RemoveUserValue(askedKey{})
	askedPool.Put(a)
}
