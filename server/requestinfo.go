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

// requestInfo is what metrics, the access log and traces report about one request.
type requestInfo struct {
	began time.Time
	route string          // its pattern, without values from the client; "" when no route matches
	role  redisstore.Role // that an API key needs here; "" is Admin
	// organization and agent are the caller that the credential names. For an API key the store has not confirmed it yet.
	organization uuid.UUID
	agent        uuid.UUID
	actor        uuid.UUID     // that acts for the agent with a delegated token; uuid.Nil for the agent itself
	metrics      *routeMetrics // of the route; nil before it is known
	code         string        // of the problem in the response; "" for none
	shed         bool          // an overloaded store shed its call; these are too many to log each

	proofs int  // how many headers DPoP it has
	proven bool // its access token comes under the scheme DPoP

	shared bool            // the response body is shared by all requests and takes no memory of its own
	unread bool            // the request could not be read completely; fasthttp then takes it for a GET
	traced context.Context // carries the span; nil without tracing
}

type infoKey struct{}

var infoPool = sync.Pool{New: func() any { return new(requestInfo) }}

// startInfo gives the request its info. Call it once, before anything else; end takes it back.
func startInfo(ctx *fasthttp.RequestCtx) {
	info := infoPool.Get().(*requestInfo)
	*info = requestInfo{began: time.Now()}
	ctx.SetUserValue(infoKey{}, info)
}

// begunInfo returns the info of a request, nil for one that never began.
func begunInfo(ctx *fasthttp.RequestCtx) *requestInfo {
	info, _ := ctx.UserValue(infoKey{}).(*requestInfo)
	return info
}

// end takes the info back from its request, and gives it to a later one.
func (info *requestInfo) end(ctx *fasthttp.RequestCtx) {
	ctx.RemoveUserValue(infoKey{})
	infoPool.Put(info)
}

// infoOf returns the info of a request. Do not keep it beyond the request.
func infoOf(ctx *fasthttp.RequestCtx) *requestInfo {
	if info := begunInfo(ctx); info != nil {
		return info
	}
	return new(requestInfo) // a test called the handler directly
}

// identifyCaller records whose credential the request carries.
func identifyCaller(ctx *fasthttp.RequestCtx, organization, agent uuid.UUID) {
	info := infoOf(ctx)
	info.organization, info.agent = organization, agent
}

// traceID returns the id of a sampled trace, "" otherwise.
func (info *requestInfo) traceID() string {
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
func (info *requestInfo) method(ctx *fasthttp.RequestCtx) string {
	if info.unread {
		return "_OTHER"
	}
	switch method := string(ctx.Method()); method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return method
	}
	return "_OTHER"
}

// requestContext returns the context for a request's calls to the store. It outlives the request: fasthttp's own context
// ends with the server, which still answers the requests it has accepted.
func requestContext(ctx *fasthttp.RequestCtx) context.Context {
	info := infoOf(ctx)
	if info.actor != uuid.Nil {
		return redisstore.WithActor(info.context(), requestID(ctx), info.actor)
	}
	return redisstore.WithRequestID(info.context(), requestID(ctx))
}

// readContext is requestContext for calls that change nothing and need no request id in the audit trail.
func readContext(ctx *fasthttp.RequestCtx) context.Context { return infoOf(ctx).context() }

func (info *requestInfo) context() context.Context {
	if info.traced != nil {
		return info.traced
	}
	return context.Background()
}

func (info *requestInfo) methodIndex(ctx *fasthttp.RequestCtx) int {
	if info.unread {
		return len(methodLabels) - 1
	}
	return methodIndex(ctx.Method())
}
