package server

import (
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
	"remit/server/conn"
	"remit/server/internal/web"
)

// front is what every request passes before and after its handler: framing, memory, request ids, metrics, traces, logs and
// problems.
type front struct {
	frontConfig

	requests  web.RequestIDs
	drain     conn.Drain
	bodies    conn.Bodies
	unwritten *conn.Pool // for large responses that are being written
	shed      shedLog
	http      *fasthttp.Server
}

// frontConfig configures a front.
type frontConfig struct {
	log       *slog.Logger
	tracer    trace.Tracer   // nil records none
	restarts  bool           // begins a new trace with each request
	accessLog *web.AccessLog // nil for none
	proxies   conn.Proxies
	metrics   *web.Metrics
	hooks     hooks
}

func newFront(cfg frontConfig) *front {
	return &front{frontConfig: cfg, requests: web.NewRequestIDs(), drain: conn.NewDrain(), bodies: conn.NewBodies(), unwritten: conn.NewUnwritten()}
}

// hooks are what the front asks those who know callers, resources and pages.
type hooks struct {
	// problemOf returns the problem that answers an error.
	problemOf func(error) web.Problem
	// refusal returns what to answer instead of an error: why the caller is refused, if it is.
	refusal func(ctx *fasthttp.RequestCtx, err error) error
	// challenge returns the WWW-Authenticate of a refusal, "" for none.
	challenge func(ctx *fasthttp.RequestCtx, err error, p web.Problem) string
	// offerNonce tells the client the nonce for its next proof.
	offerNonce func(ctx *fasthttp.RequestCtx)
	// verified returns the organization of the request's credential if it is known to be good without asking Redis.
	verified func(ctx *fasthttp.RequestCtx, now time.Time) (organization uuid.UUID, ok bool)
	// hasVerified says whether this instance has used an API key successfully.
	hasVerified func(organization uuid.UUID, key string) bool
	// decorate sets the headers that every response of a page has.
	decorate func(ctx *fasthttp.RequestCtx)
	// isLogged says that the cause of an error is in the log already.
	isLogged func(err error) bool
}

// newHTTP returns a server of HTTP whose every refusal is a problem.
func (f *front) newHTTP(answer fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      answer,
		ErrorHandler:                 f.answerUnreadable,
		HeaderReceived:               f.normalizeExpectation,
		ExpectHandler:                f.answerExpectation,
		Logger:                       silent{},
		MaxRequestBodySize:           conn.MaxBody,
		ReadBufferSize:               conn.MaxHeaders,
		ReadTimeout:                  conn.ReadTimeout,
		WriteTimeout:                 conn.WriteTimeout,
		IdleTimeout:                  conn.IdleTimeout,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		Concurrency:                  2 * conn.MaxConnections, // never reached: conn.Set refuses first, without a response
		DisablePreParseMultipartForm: true,
	}
}

// silent discards what fasthttp would log, because that contains what clients send.
type silent struct{}

func (silent) Printf(string, ...any) {}
