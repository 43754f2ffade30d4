// Package records serves what happened: events of agents and organizations, and usage reports.
package records

import (
	"time"

	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// Handlers serve events and usage reports.
type Handlers struct {
	Config

	Pulse time.Duration // of event streams
}

// Config is what Handlers need.
type Config struct {
	Store *redisstore.Store
	Front *web.Front
	Guard *access.Guard
	Clock func() time.Time // for usage reports
}

// New returns handlers.
func New(cfg Config) *Handlers {
	return &Handlers{Config: cfg, Pulse: streamPulse}
}

// Register registers the routes of all operations.
func (h *Handlers) Register(r *web.Routes) {
	h.eventRoutes(r)
	h.organizationEventRoutes(r)
	h.usageRoutes(r)
}
