// Package identity serves organizations, their API keys, agents with their refresh families, and trusted issuers.
package identity

import (
	"net/netip"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"remit/internal/metrics"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// Handlers serve the operations on organizations, API keys, agents, refresh families and trusted issuers.
type Handlers struct {
	Config

	counted       counters
	bootstrapHash atomic.Pointer[[32]byte] // SHA-256 of the token that creates organizations
}

// Config is what Handlers need.
type Config struct {
	Store         *redisstore.Store
	Front         *web.Front
	Guard         *access.Guard
	Registry      prometheus.Registerer
	Organizations Organizations
	Creations     *access.RateLimiter[netip.Addr] // of organizations, by client address; nil for no limit
	AllowPrivate  bool                            // key sets may be read over plain http
}

// counters count what the operations of this package do, as their help says.
type counters struct {
	organizationsCreated, limitedOrganizations prometheus.Counter
	agentsCreated, agentsRevoked               prometheus.Counter
}

// New returns handlers, and registers what they count.
func New(cfg Config) *Handlers {
	count := func(name, help string, labels prometheus.Labels) prometheus.Counter {
		return metrics.Counter(cfg.Registry, name, help, labels)
	}
	h := &Handlers{Config: cfg, counted: counters{
		organizationsCreated: count("remit_organizations_created_total", "Organizations created.", nil),
		limitedOrganizations: count("remit_rate_limited_total", "Requests refused with 429 by a limit per client address: organizations, failed-auth.", prometheus.Labels{"limit": "organizations"}),
		agentsCreated:        count("remit_agents_created_total", "Agents created.", nil),
		agentsRevoked:        count("remit_agents_revoked_total", "Requests that revoked an agent, repeated ones included.", nil),
	}}
	if cfg.Organizations.BootstrapToken != "" {
		h.SetBootstrapHash(token.Hash(cfg.Organizations.BootstrapToken))
	}
	return h
}

// Register registers the routes of all operations.
func (h *Handlers) Register(r *web.Routes) {
	h.organizationRoutes(r)
	h.apiKeyRoutes(r)
	h.agentRoutes(r)
	h.suspensionRoutes(r)
	h.familyRoutes(r)
	h.trustedIssuerRoutes(r)
}
