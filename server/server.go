// Package server is Remit's HTTP layer. Each resource has a file with its routes, requests, validation, responses and
// handlers. problem.go is the only table from errors to statuses and codes. Package access finds out who calls, package web is what
// every request passes, and package conn what knows no request.
//
// The files form layers: state.go holds what handlers share, above the parts it is made of; resources build on it; this
// file wires everything together.
package server

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// New returns a server that is ready to Serve. It has no keys until SetKeyring.
func New(cfg Config) *Server {
	s := &Server{
		store: cfg.Store, defaults: cfg.Defaults.filled(),
		limits: newLimits(cfg.Limits, time.Now), organizations: cfg.Organizations,
		tls: cfg.TLS, open: conn.NewSet(cfg.connectionLimits()), pulse: streamPulse, waiters: conn.NewWaiterLimit(cfg.waiterLimit()),
		metricsApart: cfg.MetricsApart, webhooks: cfg.Webhooks, clock: cfg.Clock,
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if cfg.Organizations.BootstrapToken != "" {
		s.SetBootstrapHash(token.Hash(cfg.Organizations.BootstrapToken))
	}
	s.metrics = newServiceMetrics(s.store, cfg.Version, s.open.Len, s.waiters.Len)
	s.metrics.registry.MustRegister(cfg.Collectors...)
	s.guard = &access.Guard{Config: access.Config{
		Store: s.store, Clock: s.clock, FailedAuth: s.limits.failedAuth, ProofHosts: cfg.ProofHosts, KeySets: cfg.KeySets, OverTLS: cfg.TLS != nil,
		Metrics: access.NewMetrics(s.metrics.registry),
	}}
	s.front = web.NewFront(web.Config{
		Log: cfg.Log, Tracer: cfg.Tracer, Restarts: cfg.RestartTraces, AccessLog: web.NewAccessLog(cfg.AccessLog.Log, cfg.AccessLog.Every),
		Proxies: cfg.TrustedProxies, Metrics: s.metrics.http,
		Hooks: web.Hooks{
			ProblemOf: problemOf, Refusal: s.guard.KeyFirst, Challenge: s.guard.Challenge, OfferNonce: s.guard.OfferNonce,
			Verified: s.guard.VerifiedOrganization, HasVerified: s.guard.HasVerified, Decorate: s.decoratePage, IsLogged: access.IsOfTenantsHost,
		},
	})
	s.guard.Front = s.front
	s.identify = s.front.Around(s.front.AtRole(pageCallRoute, redisstore.Viewer, s.keyIdentity))
	s.signIn = s.front.Around(s.front.AtRole(pageCallRoute, redisstore.Viewer, s.limitedIdentity))
	s.front.HTTP, s.metricsHTTP = s.front.NewHTTP(s.Handler()), s.front.NewHTTP(s.metricsHandler())
	s.front.HTTP.ReduceMemoryUsage = cfg.TLS == nil // see package conn; over TLS it would prevent the answer to plain HTTP
	s.metricsHTTP.Concurrency = web.MaxScrapers
	return s
}

// SetKeyring sets the keys. Equal keys keep the token cache.
func (s *Server) SetKeyring(k *token.Keyring) { s.guard.SetKeyring(k) }

// FollowKeys makes the server read its keys with this function at each ReadKeys, and when a credential names an unknown key.
func (s *Server) FollowKeys(read func(context.Context) (*token.Keyring, error)) {
	s.guard.FollowKeys(read)
}

// ReadKeys reads the keys with the function of FollowKeys, or joins a read in progress.
func (s *Server) ReadKeys(ctx context.Context) error { return s.guard.ReadKeys(ctx) }

// Serve answers on the listener until Shutdown. It takes the listener over.
func (s *Server) Serve(accepting net.Listener) error { return s.serve(accepting, false) }

func (s *Server) serve(accepting net.Listener, forPages bool) error {
	accepting = conn.Reserving(s.open.Listen(accepting), forPages)
	if s.tls != nil {
		accepting = tls.NewListener(accepting, s.tls)
	}
	return s.front.HTTP.Serve(accepting)
}

// Handler returns the handler of every request.
func (s *Server) Handler() fasthttp.RequestHandler {
	routes, authorize := s.routes().Router.Handler, s.front.At(web.AuthorizePath, s.authorize)
	nowhere := s.front.At("", func(*fasthttp.RequestCtx) error { return web.ErrNoRoute })
	api := func(ctx *fasthttp.RequestCtx) {
		if string(ctx.URI().PathOriginal()) == web.AuthorizePath { // for every method, which the router cannot express
			authorize(ctx)
			return
		}
		routes(ctx)
	}
	s.api = s.front.Around(api)
	return s.front.Around(func(ctx *fasthttp.RequestCtx) {
		switch {
		case s.pages.have(ctx):
			s.pages.answer(ctx)
		case isForPages(ctx):
			nowhere(ctx)
		default:
			api(ctx)
		}
	})
}

// routes registers all resources.
func (s *Server) routes() *web.Routes {
	r := s.front.NewRoutes()
	s.healthRoutes(r)
	if !s.metricsApart {
		s.metricsRoutes(r)
	}
	s.documentRoutes(r)
	s.organizationRoutes(r)
	s.apiKeyRoutes(r)
	s.agentRoutes(r)
	s.suspensionRoutes(r)
	s.familyRoutes(r)
	s.eventRoutes(r)
	s.organizationEventRoutes(r)
	s.guard.TokenRoutes(r)
	s.guard.IntrospectionRoutes(r)
	s.subrequestRoutes(r)
	s.guard.OAuthRoutes(r)
	s.guard.MetadataRoutes(r)
	s.guard.ResourceMetadataRoutes(r)
	s.actionRoutes(r)
	s.batchRoutes(r)
	s.transactionRoutes(r)
	s.leaseRoutes(r)
	s.budgetRoutes(r)
	s.webhookRoutes(r)
	s.trustedIssuerRoutes(r)
	s.usageRoutes(r)
	s.sessionRoutes(r)
	s.sessionRequestRoutes(r)
	return r
}
