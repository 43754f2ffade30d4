// Package budgets serves budgets, sessions, and what is charged to them: actions, transactions, leases and requests for more.
package budgets

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// Handlers serve the operations on budgets, sessions and what is charged to them.
type Handlers struct {
	Config

	counted *counters
}

// Config is what Handlers need.
type Config struct {
	Store    *redisstore.Store
	Front    *web.Front
	Guard    *access.Guard
	Registry prometheus.Registerer
	Defaults SessionDefaults
}

// New returns handlers, and registers what they count.
func New(cfg Config) *Handlers {
	cfg.Defaults = cfg.Defaults.filled()
	return &Handlers{Config: cfg, counted: newCounters(cfg.Registry)}
}

// Register registers the routes of all operations.
func (h *Handlers) Register(r *web.Routes) {
	h.subrequestRoutes(r)
	h.actionRoutes(r)
	h.batchRoutes(r)
	h.transactionRoutes(r)
	h.leaseRoutes(r)
	h.budgetRoutes(r)
	h.sessionRoutes(r)
	h.suspensionRoutes(r)
	h.sessionRequestRoutes(r)
	h.sessionKeyRoutes(r)
}

// SessionDefaults are the limits of a session whose request names none. The zero value means 1000 actions, 100 USD and 1
// hour; in any other value every field counts, also a MaxValue of 0.
type SessionDefaults struct {
	MaxActions int64
	MaxValue   money.MicroUSD
	Lifetime   time.Duration
}

// filled returns the defaults that the zero value stands for, and any other as it is.
func (d SessionDefaults) filled() SessionDefaults {
	if d == (SessionDefaults{}) {
		return SessionDefaults{MaxActions: 1000, MaxValue: 100 * money.USD, Lifetime: time.Hour}
	}
	return d
}
