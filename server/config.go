package server

import (
	"crypto/tls"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"remit/internal/jwksfetch"
	"remit/redisstore"
	"remit/server/budgets"
	"remit/server/conn"
	"remit/server/identity"
	"remit/server/internal/access"
	"remit/server/webhooks"
)

// Config configures a server. Only Store and Log are required.
type Config struct {
	Store *redisstore.Store
	Log   *slog.Logger
	// Version is the version of the service, which the metrics report. "" reports "unknown".
	Version string
	// Defaults are the limits of a session whose request names none.
	Defaults budgets.SessionDefaults
	// Limits bound what one client address may do without a valid credential.
	Limits Limits
	// TrustedProxies are the networks of proxies whose X-Forwarded-For is believed. Without any, the peer is the client.
	TrustedProxies []netip.Prefix
	// ProofHosts are the hosts that DPoP proofs may be made for, with that of a configured issuer. Nil allows the host of every request.
	ProofHosts ProofHosts
	// Organizations says who may create organizations. The zero value allows everyone.
	Organizations identity.Organizations
	// MetricsApart leaves /metrics to ServeMetrics.
	MetricsApart bool
	// Connections is how many connections may be open at once, at most 32768. 0 means 32768.
	Connections int
	// Tracer records a span for each request. Nil records none.
	Tracer trace.Tracer
	// RestartTraces begins a new trace with each request and ignores the trace context that it carries.
	RestartTraces bool
	// AccessLog logs requests. The zero value logs none.
	AccessLog AccessLog
	// Clock tells the time for tokens and usage reports; nil means time.Now. Everything else about sessions, transactions and
	// limits goes by the clock of Redis: move both.
	Clock func() time.Time
	// Collectors have metrics that are served with those of the server.
	Collectors []prometheus.Collector
	// Webhooks says what webhooks may be.
	Webhooks webhooks.Options
	// KeySets reads the keys that agents and trusted issuers publish. Nil reads none. The caller closes it.
	KeySets *jwksfetch.Fetcher
	// TLS makes the server speak TLS only; see TLSFiles. Nil means plain HTTP.
	TLS *tls.Config
}

// AccessLog says which requests are logged, and where: one line each, at level info.
type AccessLog struct {
	Log *slog.Logger // nil logs nothing
	// Every logs one in N requests that did not fail: 1 logs all, 0 none. Failed requests (5xx) are always logged, unless
	// they were shed under overload: those count as not failed.
	Every uint64
}

// TLSFiles are the files of a server that speaks TLS; their changes are followed.
type TLSFiles = conn.TLSFiles

// ProofHosts are the hosts that the htu of a DPoP proof may name, beside those of the issuer and of loopback names. Without them a
// server that a client called with a proof for itself could pass token and proof on to this service, under its own name.
type ProofHosts = access.ProofHosts

// connections returns how many connections may be open at once.
func (c Config) connections() int {
	if c.Connections <= 0 {
		return conn.MaxConnections
	}
	return min(c.Connections, conn.MaxConnections)
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

// waiterLimit returns how many requests may wait for events: at most half of the connections, so that the others stay
// available.
func (c Config) waiterLimit() int { return min(conn.MaxWaiters, max(c.connections()/2, 1)) }
