// Package server is Remit's HTTP face: one file per resource, each with its requests, their validation, its answers and
// its handlers. problem.go alone maps errors to statuses and codes, decode.go alone reads bodies, auth.go alone reads
// credentials.
//
// A handler returns an error or has answered; the adapter writes the error. Nothing that fasthttp lends a handler (its
// bytes are reused for the next request) outlives the handler: whatever is kept or handed on is a copy.
package server

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"remit/server/conn"
	"remit/token"
)

// New returns a server that is ready to Serve.
func New(cfg Config) *Server {
	s := &Server{
		store: cfg.Store, log: cfg.Log, defaults: cfg.Defaults.filled(), requests: newRequestIDs(),
		limits: newLimits(cfg.Limits, time.Now), proxies: cfg.TrustedProxies, organizations: cfg.Organizations,
		tracer: cfg.Tracer, restarts: cfg.RestartTraces, accessLog: newAccessLog(cfg.AccessLog),
		tls: cfg.TLS, open: conn.NewSet(cfg.connectionLimits()), drain: drain{most: drainTime, quiet: quietTime}, pulse: streamPulse, waiting: newWaiting(cfg.waitingPlaces()),
		bodies: newBodies(), unwritten: newUnwritten(),
		metricsApart: cfg.MetricsApart,
	}
	if cfg.Organizations.BootstrapToken != "" {
		s.SetBootstrapHash(token.Hash(cfg.Organizations.BootstrapToken))
	}
	s.counts = newCounts(s.store, cfg.Version, s.open.Len, s.waiting.count)
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

// silent keeps fasthttp from logging what clients send.
type silent struct{}

func (silent) Printf(string, ...any) {}
