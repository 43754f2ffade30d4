package server

import (
	"crypto/tls"
	"log/slog"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"
	"remit/money"
	"remit/redisstore"
	"remit/server/conn"
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

func (d SessionDefaults) filled() SessionDefaults {
	if d == (SessionDefaults{}) {
		return SessionDefaults{MaxActions: 1000, MaxValue: 100 * money.USD, Lifetime: time.Hour}
	}
	return d
}

// Organizations says who may create organizations. The zero value is OrganizationsOpen.
type Organizations struct {
	Creation OrganizationCreation
	// BootstrapToken is the token that OrganizationsToken asks for. "": that of SetBootstrapHash.
	BootstrapToken string
}

// OrganizationCreation is one way to decide who may create organizations.
type OrganizationCreation string

// Who may create organizations: everybody; who holds the bootstrap token; nobody.
const (
	OrganizationsOpen   OrganizationCreation = "open"
	OrganizationsToken  OrganizationCreation = "token"
	OrganizationsClosed OrganizationCreation = "closed"
)
