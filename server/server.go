// Package server is Remit's HTTP layer: it puts identity, budgets, records, webhooks and pages together. problem.go is the only table from
// errors to statuses and codes. Package access finds out who calls, package web is what every request passes, and package conn what
// knows no request.
package server

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/budgets"
	"remit/server/conn"
	"remit/server/identity"
	"remit/server/internal/access"
	"remit/server/internal/web"
	"remit/server/pages"
	"remit/server/records"
	"remit/server/webhooks"
)

// Server answers HTTP. It answers 503 to whatever needs a key until SetKeyring.
type Server struct {
	guard    *access.Guard
	front    *web.Front
	store    *redisstore.Store
	tls      *tls.Config
	open     *conn.Set
	ready    readiness
	identity *identity.Handlers
	budgets  *budgets.Handlers
	records  *records.Handlers
	webhooks *webhooks.Handlers
	pages    *pages.Host

	registry     *prometheus.Registry
	metricsApart bool
	scrapes      web.Scrapes
	metricsHTTP  *fasthttp.Server // serves ServeMetrics
}

// New returns a server that is ready to Serve. It has no keys until SetKeyring.
func New(cfg Config) *Server {
	clock := cfg.Clock
	if clock == nil {
		clock = time.Now
	}
	limits := newLimits(cfg.Limits, time.Now)
	s := &Server{store: cfg.Store, tls: cfg.TLS, open: conn.NewSet(cfg.connectionLimits()), registry: newRegistry(cfg.Store), metricsApart: cfg.MetricsApart}
	s.guard = &access.Guard{Config: access.Config{
		Store: cfg.Store, Clock: clock, FailedAuth: limits.failedAuth, ProofHosts: cfg.ProofHosts, KeySets: cfg.KeySets, OverTLS: cfg.TLS != nil,
		Metrics: access.NewMetrics(s.registry),
	}}
	waiters := conn.NewWaiterLimit(cfg.waiterLimit())
	s.front = web.NewFront(web.Config{
		Log: cfg.Log, Tracer: cfg.Tracer, Restarts: cfg.RestartTraces, AccessLog: web.NewAccessLog(cfg.AccessLog.Log, cfg.AccessLog.Every),
		Proxies: cfg.TrustedProxies, Metrics: web.NewMetrics(s.registry), Waiters: waiters,
		Hooks: web.Hooks{
			ProblemOf: problemOf, Refusal: s.guard.KeyFirst, Challenge: s.guard.Challenge, OfferNonce: s.guard.OfferNonce,
			Verified: s.guard.VerifiedOrganization, HasVerified: s.guard.HasVerified, Decorate: func(ctx *fasthttp.RequestCtx) { s.pages.Decorate(ctx) }, IsLogged: access.IsOfTenantsHost,
		},
	})
	s.guard.Front = s.front
	s.identity = identity.New(identity.Config{
		Store: cfg.Store, Front: s.front, Guard: s.guard, Registry: s.registry,
		Organizations: cfg.Organizations, Creations: limits.organizations, AllowPrivate: cfg.Webhooks.AllowPrivate,
	})
	s.budgets = budgets.New(budgets.Config{Store: cfg.Store, Front: s.front, Guard: s.guard, Registry: s.registry, Defaults: cfg.Defaults})
	s.records = records.New(records.Config{Store: cfg.Store, Front: s.front, Guard: s.guard, Clock: clock})
	s.webhooks = webhooks.New(cfg.Store, s.front, cfg.Webhooks)
	s.pages = pages.New(cfg.Store, s.front, s.guard)
	registerGauges(s.registry, cfg.Version, s.open.Len, waiters.Len)
	s.registry.MustRegister(cfg.Collectors...)
	s.front.HTTP, s.metricsHTTP = s.front.NewHTTP(s.Handler()), s.front.NewHTTP(s.metricsHandler())
	s.front.HTTP.ReduceMemoryUsage = cfg.TLS == nil // see package conn; over TLS it would prevent the answer to plain HTTP
	s.metricsHTTP.Concurrency = web.MaxScrapers
	return s
}

// SetBootstrapHash sets the SHA-256 of the bootstrap token, or of a new one. Without it OrganizationsToken allows no caller.
func (s *Server) SetBootstrapHash(hash [32]byte) { s.identity.SetBootstrapHash(hash) }

// Pages returns what web pages may ask of the server.
func (s *Server) Pages() *pages.Host { return s.pages }

// ServePages serves only the pages, on a separate listener until Shutdown. It takes the listener over. Set Apart of the pages.Site with it.
func (s *Server) ServePages(accepting net.Listener) error { return s.serve(accepting, true) }

// Gateway returns what the metering gateway asks of the server, inside the process.
func (s *Server) Gateway() *budgets.Gateway {
	return s.budgets.Gateway(s.front.Around(s.routes().Router.Handler))
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
	routes, authorize := s.routes().Router.Handler, s.front.At(web.AuthorizePath, s.budgets.Authorize)
	return s.pages.Handler(func(ctx *fasthttp.RequestCtx) {
		if string(ctx.URI().PathOriginal()) == web.AuthorizePath { // for every method, which the router cannot express
			authorize(ctx)
			return
		}
		routes(ctx)
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
	s.guard.TokenRoutes(r)
	s.guard.IntrospectionRoutes(r)
	s.guard.VerificationRoutes(r)
	s.guard.OAuthRoutes(r)
	s.guard.MetadataRoutes(r)
	s.guard.ResourceMetadataRoutes(r)
	s.identity.Register(r)
	s.budgets.Register(r)
	s.records.Register(r)
	s.webhooks.Register(r)
	return r
}
