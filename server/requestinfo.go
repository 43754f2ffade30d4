package server

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
	"remit/redisstore"
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

// traceID is that of a request whose span somebody will see; "" for others.
func (a *asked) traceID() string {
	if a.traced == nil {
		return ""
	}
	if own := trace.SpanContextFromContext(a.traced); own.IsSampled() {
		return own.TraceID().String()
	}
	return ""
}

// method is the request's, or what OpenTelemetry calls those that are none of HTTP's, which are the client's words, and those
// that are not known.
func (a *asked) method(ctx *fasthttp.RequestCtx) string {
	if a.unread {
		return "_OTHER"
	}
	switch method := string(ctx.Method()); method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return method
	}
	return "_OTHER"
}

// forRequest returns the context of a request's calls to the store. It does not end with the request: fasthttp's ends
// with the server, and what was accepted is still answered then.
func forRequest(ctx *fasthttp.RequestCtx) context.Context {
	return redisstore.WithRequestID(forReading(ctx), requestID(ctx))
}

// forReading is forRequest for calls that change nothing: the audit trail need not know in which request.
func forReading(ctx *fasthttp.RequestCtx) context.Context {
	if traced := askedOf(ctx).traced; traced != nil {
		return traced
	}
	return context.Background()
}

func (a *asked) methodPlace(ctx *fasthttp.RequestCtx) int {
	if a.unread {
		return len(countedMethods) - 1
	}
	return methodPlace(ctx.Method())
}
