package web

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
	"remit/redisstore"
)

// RequestInfo is what metrics, the access log and traces report about one request.
type RequestInfo struct {
	Began time.Time
	Route string          // its pattern, without values from the client; "" when no route matches
	Role  redisstore.Role // that an API key needs here; "" is Admin
	// Organization and Agent are the caller that the credential names. For an API key the store has not confirmed it yet.
	Organization uuid.UUID
	Agent        uuid.UUID
	Actor        uuid.UUID     // that acts for the agent with a delegated token; uuid.Nil for the agent itself
	Metrics      *routeMetrics // of the route; nil before it is known
	Code         string        // of the problem in the response; "" for none
	Shed         bool          // an overloaded store shed its call; these are too many to log each

	Proofs int  // how many headers DPoP it has
	Proven bool // its access token comes under the scheme DPoP

	Idempotency *redisstore.Idempotency // nil without a key

	Shared bool            // the response body is shared by all requests and takes no memory of its own
	unread bool            // the request could not be read completely; fasthttp then takes it for a GET
	traced context.Context // carries the span; nil without tracing
}

type infoKey struct{}

var infoPool = sync.Pool{New: func() any { return new(RequestInfo) }}

// startInfo gives the request its info. Call it once, before anything else; end takes it back.
func startInfo(ctx *fasthttp.RequestCtx) {
	info := infoPool.Get().(*RequestInfo)
	*info = RequestInfo{Began: time.Now()}
	ctx.SetUserValue(infoKey{}, info)
}

// begunInfo returns the info of a request, nil for one that never began.
func begunInfo(ctx *fasthttp.RequestCtx) *RequestInfo {
	info, _ := ctx.UserValue(infoKey{}).(*RequestInfo)
	return info
}

// end takes the info back from its request, and gives it to a later one.
func (info *RequestInfo) end(ctx *fasthttp.RequestCtx) {
	ctx.RemoveUserValue(infoKey{})
	info.Idempotency = nil // it may have a credential
	infoPool.Put(info)
}

// InfoOf returns the info of a request. Do not keep it beyond the request.
func InfoOf(ctx *fasthttp.RequestCtx) *RequestInfo {
	if info := begunInfo(ctx); info != nil {
		return info
	}
	return new(RequestInfo) // a test called the handler directly
}

// IdentifyCaller records whose credential the request carries.
func IdentifyCaller(ctx *fasthttp.RequestCtx, organization, agent uuid.UUID) {
	info := InfoOf(ctx)
	info.Organization, info.Agent = organization, agent
}

// traceID returns the id of a sampled trace, "" otherwise.
func (info *RequestInfo) traceID() string {
	if info.traced == nil {
		return ""
	}
	if own := trace.SpanContextFromContext(info.traced); own.IsSampled() {
		return own.TraceID().String()
	}
	return ""
}

// method returns the request's method, and _OTHER, as OpenTelemetry has it, for an unknown one: any text may come from a
// client.
func (info *RequestInfo) method(ctx *fasthttp.RequestCtx) string {
	if info.unread {
		return "_OTHER"
	}
	switch method := string(ctx.Method()); method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return method
	}
	return "_OTHER"
}

// RequestContext returns the context for a request's calls to the store. It outlives the request: fasthttp's own context
// ends with the server, which still answers the requests it has accepted.
func RequestContext(ctx *fasthttp.RequestCtx) context.Context {
	info := InfoOf(ctx)
	if info.Actor != uuid.Nil {
		return redisstore.WithActor(info.context(), RequestID(ctx), info.Actor)
	}
	return redisstore.WithRequestID(info.context(), RequestID(ctx))
}

// ReadContext is RequestContext for calls that change nothing and need no request id in the audit trail.
func ReadContext(ctx *fasthttp.RequestCtx) context.Context { return InfoOf(ctx).context() }

func (info *RequestInfo) context() context.Context {
	if info.traced != nil {
		return info.traced
	}
	return context.Background()
}

func (info *RequestInfo) methodIndex(ctx *fasthttp.RequestCtx) int {
	if info.unread {
		return len(methodLabels) - 1
	}
	return methodIndex(ctx.Method())
}
