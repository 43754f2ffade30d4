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
type requestInfo struct {
	began time.Time
	route string // as routes names it, without what the client chose; "" when there is none at its path
	// organization and agent are who caller, as the credential says that was read; its being live is for the store to say.
	organization uuid.UUID
	agent        uuid.UUID
	metrics      *routeMetrics // of the route; nil as long as there is none
	code         string        // of the problem that is answered; "" for none
	shed         bool          // with others, too many to tell of each

	shared bool            // its answer's body is one for all, and takes no memory of its own
	unread bool            // it could not be read, or not to its end: fasthttp then takes it for a GET
	traced context.Context // with the request's span; nil when there is none
}

type infoKey struct{}

var infoPool = sync.Pool{New: func() any { return new(requestInfo) }}

// startInfo is called once for each request, before anything else; endRequest when its answer is complete.
func startInfo(ctx *fasthttp.RequestCtx) {
	info := infoPool.Get().(*requestInfo)
	*info = requestInfo{began: time.Now()}
	ctx.SetUserValue(infoKey{}, info)
}

// infoOf returns the request as it is seen. It is not to be kept beyond the request.
func infoOf(ctx *fasthttp.RequestCtx) *requestInfo {
	if info, begun := ctx.UserValue(infoKey{}).(*requestInfo); begun {
		return info
	}
	return new(requestInfo) // of a handler that is called by itself
}

// identifyCaller notes whose credential the request has shown, once it is seen to be genuine.
func identifyCaller(ctx *fasthttp.RequestCtx, organization, agent uuid.UUID) {
	info := infoOf(ctx)
	info.organization, info.agent = organization, agent
}

// traceID is that of a request whose span somebody will see; "" for others.
func (info *requestInfo) traceID() string {
	if info.traced == nil {
		return ""
	}
	if own := trace.SpanContextFromContext(info.traced); own.IsSampled() {
		return own.TraceID().String()
	}
	return ""
}

// method is the request's, or what OpenTelemetry calls those that are none of HTTP's, which are the client's words, and those
// that are not known.
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

// requestContext returns the context of a request's calls to the store. It does not end with the request: fasthttp's ends
// with the server, and what was accepted is still answered then.
func requestContext(ctx *fasthttp.RequestCtx) context.Context {
	return redisstore.WithRequestID(readContext(ctx), requestID(ctx))
}

// readContext is requestContext for calls that change nothing: the audit trail need not know in which request.
func readContext(ctx *fasthttp.RequestCtx) context.Context {
	if traced := infoOf(ctx).traced; traced != nil {
		return traced
	}
	return context.Background()
}

func (info *requestInfo) methodIndex(ctx *fasthttp.RequestCtx) int {
	if info.unread {
		return len(methodLabels) - 1
	}
	return methodIndex(ctx.Method())
}
