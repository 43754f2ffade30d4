// Package server is Remit's HTTP face: one file per resource, each with its requests, their validation, its answers and
// its handlers. problem.go alone maps errors to statuses and codes, decode.go alone reads bodies, auth.go alone reads
// credentials.
//
// A handler returns an error or has answered; the adapter writes the error. Nothing that fasthttp lends a handler (its
// bytes are reused for the next request) outlives the handler: whatever is kept or handed on is a copy.
package server

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"
	"remit/money"
	"remit/redisstore"
	"remit/server/conn"
	"remit/token"
)

// Config is what a server needs.
type Config struct {
	Store *redisstore.Store
	Log   *slog.Logger
	// Version is the service's, for its metrics.
	Version string
	// Defaults are the limits of a session that is created without its own.
	Defaults SessionDefaults
	// Limits bound what a client address may do without a credential.
	Limits Limits
	// TrustedProxies are the networks of the proxies whose X-Forwarded-For is believed. None: the peer is the client.
	TrustedProxies []netip.Prefix
	// Organizations says who may create organizations. The zero value lets everybody.
	Organizations Organizations
	// MetricsApart leaves /metrics to ServeMetrics.
	MetricsApart bool
	// Connections is how many clients may be connected at once. 0 means 32768; more is not possible.
	Connections int
	// Tracer makes a span of each request. Nil: there are none.
	Tracer trace.Tracer
	// RestartTraces begins a new trace with each request, whatever its caller says of its own.
	RestartTraces bool
	// AccessLog tells of requests. The zero value tells of none.
	AccessLog AccessLog
	// TLS makes the server speak TLS alone; see TLSFiles. Nil: plain HTTP.
	TLS *tls.Config
}

// connections returns how many clients may be connected at once.
func (c Config) connections() int {
	if c.Connections <= 0 {
		return maxConnections
	}
	return min(c.Connections, maxConnections)
}

// ConnectionsOfOneAddress returns how many of a server's connections one client address may have: three quarters, so that
// no client can take them all. Behind a proxy all clients share one address; a trusted proxy may have every connection.
func ConnectionsOfOneAddress(connections int) int { return max(connections*3/4, 1) }

func (c Config) connectionLimits() conn.Config {
	most := c.connections()
	return conn.Config{
		Limit: most, LimitPerAddress: ConnectionsOfOneAddress(most), Proxies: c.TrustedProxies, Opaque: c.TLS != nil,
	}
}

// waitingPlaces returns how many requests may wait for events: half of the connections stay free for others.
func (c Config) waitingPlaces() int { return min(maxWaiting, max(c.connections()/2, 1)) }

// SessionDefaults are the limits of a session that is created without its own. The zero value means 1000 actions, 100 USD
// and 1 hour; otherwise every field counts, a MaxValue of 0 too.
type SessionDefaults struct {
	MaxActions int64
	MaxValue   money.MicroUSD
	Lifetime   time.Duration
}

// Server answers HTTP. Until SetKeyring it answers 503 to whatever needs a key.
type Server struct {
	store    *redisstore.Store
	log      *slog.Logger
	tracer   trace.Tracer
	restarts bool // begins each trace anew
	// accessLog is nil when there is none.
	accessLog *accessLog
	defaults  SessionDefaults
	verifier  atomic.Pointer[verifier] // with the keyring
	keyReads  keyReads
	requests  requestIDs
	limits    limits
	proxies   conn.Proxies
	tls       *tls.Config
	// organizations says who may create them.
	organizations Organizations
	bootstrapHash atomic.Pointer[[32]byte] // SHA-256 of the token that creates them
	open          *conn.Set
	drain         drain
	ready         readiness
	waiting       *waiting
	bodies        bodies
	unwritten     *pool // of large answers
	turnedAway    turnedAway
	counts        *counts
	metricsApart  bool
	scrapes       scrapes
	http          *fasthttp.Server
	watchers      *fasthttp.Server // of ServeMetrics
}

const (
	maxBody    = 256 << 10 // bytes; more is 413
	maxHeaders = 16 << 10  // bytes of request line and headers; more is 431

	maxWatchers    = 64      // connections to the metrics alone
	maxConnections = 1 << 15 // half a gigabyte of buffers at the most

	readTimeout  = 10 * time.Second // for a whole request
	writeTimeout = 10 * time.Second
	idleTimeout  = 2 * time.Minute // between two requests of a connection
)

// New returns a server that is ready to Serve.
func New(cfg Config) *Server {
	s := &Server{
		store: cfg.Store, log: cfg.Log, defaults: cfg.Defaults.filled(), requests: newRequestIDs(),
		limits: newLimits(cfg.Limits, time.Now), proxies: cfg.TrustedProxies, organizations: cfg.Organizations,
		tracer: cfg.Tracer, restarts: cfg.RestartTraces, accessLog: newAccessLog(cfg.AccessLog),
		tls: cfg.TLS, open: conn.NewSet(cfg.connectionLimits()), drain: drain{most: drainTime, quiet: quietTime}, waiting: newWaiting(cfg.waitingPlaces()),
		bodies: newBodies(), unwritten: newUnwritten(),
		metricsApart: cfg.MetricsApart,
	}
	if cfg.Organizations.BootstrapToken != "" {
		s.SetBootstrapHash(token.Hash(cfg.Organizations.BootstrapToken))
	}
	s.counts = newCounts(s, cfg.Version)
	s.http, s.watchers = s.newHTTP(s.Handler()), s.newHTTP(s.watchersHandler())
	s.http.ReduceMemoryUsage = cfg.TLS == nil // see readAhead; with it, who speaks plain HTTP to TLS is not answered
	s.watchers.Concurrency = maxWatchers
	return s
}

func (s *Server) newHTTP(answer fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      answer,
		ErrorHandler:                 s.answerUnreadable,
		HeaderReceived:               s.settleExpectation,
		ExpectHandler:                s.answerExpectation,
		Logger:                       silent{},
		MaxRequestBodySize:           maxBody,
		ReadBufferSize:               maxHeaders,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		Concurrency:                  2 * maxConnections, // never reached: admit says no first, and without a word
		DisablePreParseMultipartForm: true,
	}
}

// SetKeyring gives the server its keys, or new ones. With the same ones nothing is forgotten.
func (s *Server) SetKeyring(k *token.Keyring) {
	if v := s.verifier.Load(); v == nil || !v.keys.Equal(k) {
		s.verifier.Store(newVerifier(k, s.store, s.counts))
	}
}

// keys returns the keyring, or errNoKeyring before there is one.
func (s *Server) keys() (*token.Keyring, error) {
	if v := s.verifier.Load(); v != nil {
		return v.keys, nil
	}
	return nil, errNoKeyring
}

// Serve answers on the listener until Shutdown.
func (s *Server) Serve(accepting net.Listener) error {
	accepting = memoryListener{s.open.Listen(accepting)}
	if s.tls != nil {
		accepting = tls.NewListener(accepting, s.tls)
	}
	return s.http.Serve(accepting)
}

// Handler returns the whole of the service.
func (s *Server) Handler() fasthttp.RequestHandler {
	routes, authorize := s.routes().Handler, s.at(authorizePath, s.authorize)
	return s.around(func(ctx *fasthttp.RequestCtx) {
		if string(ctx.URI().PathOriginal()) == authorizePath { // by any method, which the router does not know
			authorize(ctx)
			return
		}
		routes(ctx)
	})
}

// routes returns the router of all resources.
func (s *Server) routes() *router.Router {
	r := s.newRoutes()
	s.healthRoutes(r)
	if !s.metricsApart {
		s.metricsRoutes(r)
	}
	s.documentRoutes(r)
	s.organizationRoutes(r)
	s.agentRoutes(r)
	s.familyRoutes(r)
	s.eventRoutes(r)
	s.tokenRoutes(r)
	s.introspectionRoutes(r)
	s.gatewayRoutes(r)
	s.oauthRoutes(r)
	s.metadataRoutes(r)
	s.actionRoutes(r)
	s.batchRoutes(r)
	s.transactionRoutes(r)
	s.sessionRoutes(r)
	return r.router
}

// around is what every request passes before and after its own handler.
func (s *Server) around(answer fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		connectionOf(ctx.Conn()).bodyArrived()
		s.begin(ctx)
		defer s.endAsked(ctx)
		defer s.drain.tell(ctx)
		defer s.answerPanic(ctx)
		closes, err := checkFraming(&ctx.Request.Header)
		if closes || err != nil {
			ctx.SetConnectionClose()
		}
		if err != nil {
			connectionOf(ctx.Conn()).leaveUnread()
			s.answerProblem(ctx, err)
			return
		}
		answer(ctx)
	}
}

// begin sets what every response carries.
func (s *Server) begin(ctx *fasthttp.RequestCtx) {
	s.counts.requests.inFlight.Inc()
	beginAsked(ctx)
	header := &ctx.Response.Header
	var id [maxRequestIDSize]byte
	header.SetBytesV(headerRequestID, s.requests.append(id[:0], ctx))
	header.Set("X-Content-Type-Options", "nosniff")
	if s.tracer != nil {
		s.beginTrace(ctx)
	}
}

// silent keeps fasthttp from logging what clients send.
type silent struct{}

func (silent) Printf(string, ...any) {}
