package web

import (
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
	"remit/server/conn"
)

// Front is what every request passes before and after its handler: framing, memory, request ids, metrics, traces, logs and
// problems.
type Front struct {
	Config

	requests  requestIDs
	Drain     conn.Drain
	Bodies    conn.Bodies
	Unwritten *conn.Pool // for large responses that are being written
	Shed      shedLog
	HTTP      *fasthttp.Server
}

// Config configures a front.
type Config struct {
	Log       *slog.Logger
	Tracer    trace.Tracer // nil records none
	Restarts  bool         // begins a new trace with each request
	AccessLog *AccessLog   // nil for none
	Proxies   conn.Proxies
	Metrics   *Metrics
	Waiters   *conn.WaiterLimit // requests that wait for something to happen
	Hooks     Hooks
}

// NewFront returns a front that serves once its HTTP is set.
func NewFront(cfg Config) *Front {
	return &Front{Config: cfg, requests: NewRequestIDs(), Drain: conn.NewDrain(), Bodies: conn.NewBodies(), Unwritten: conn.NewUnwritten()}
}

// Hooks are what the front asks those who know callers, resources and pages.
type Hooks struct {
	// ProblemOf returns the problem that answers an error.
	ProblemOf func(error) Problem
	// Refusal returns what to answer instead of an error: why the caller is refused, if it is.
	Refusal func(ctx *fasthttp.RequestCtx, err error) error
	// Challenge returns the WWW-Authenticate of a refusal, "" for none.
	Challenge func(ctx *fasthttp.RequestCtx, err error, p Problem) string
	// OfferNonce tells the client the nonce for its next proof.
	OfferNonce func(ctx *fasthttp.RequestCtx)
	// Verified returns the organization of the request's credential if it is known to be good without asking Redis.
	Verified func(ctx *fasthttp.RequestCtx, now time.Time) (organization uuid.UUID, ok bool)
	// HasVerified says whether this instance has used an API key successfully.
	HasVerified func(organization uuid.UUID, key string) bool
	// Decorate sets the headers that every response of a page has.
	Decorate func(ctx *fasthttp.RequestCtx)
	// IsLogged says that the cause of an error is in the log already.
	IsLogged func(err error) bool
}

// NewHTTP returns a server of HTTP whose every refusal is a problem.
func (f *Front) NewHTTP(answer fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      answer,
		ErrorHandler:                 f.AnswerUnreadable,
		HeaderReceived:               f.normalizeExpectation,
		ExpectHandler:                f.answerExpectation,
		Logger:                       Silent{},
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

// Silent discards what fasthttp would log, because that contains what clients send.
type Silent struct{}

func (Silent) Printf(string, ...any) {}
