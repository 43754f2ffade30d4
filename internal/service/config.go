package service

import (
	"log/slog"
	"net"

	"go.opentelemetry.io/otel/trace"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
	"remit/server/budgets"
	"remit/server/webhooks"
)

// serverConfig returns the configuration of a server with so many connections, without its store, traces and access log.
func (c *serve) serverConfig(log *slog.Logger, listens net.Addr, connections int) (server.Config, error) {
	organizations, err := c.organizations(listens)
	if err != nil {
		return server.Config{}, err
	}
	tls, err := c.tlsFlags.config(log)
	if err != nil {
		return server.Config{}, err
	}
	var proofHosts server.ProofHosts
	if c.Issuer != "" {
		proofHosts = c.ProofHosts.WithIssuer(c.Issuer)
	}
	return server.Config{
		Version: release(), Log: log, TLS: tls, Limits: c.limits(), TrustedProxies: c.TrustedProxies, ProofHosts: proofHosts, Organizations: organizations,
		Webhooks:     webhooks.Options{AllowPrivate: c.WebhookAllowPrivate},
		MetricsApart: c.MetricsListen != "", Connections: connections,
		Defaults: budgets.SessionDefaults{
			MaxActions: c.DefaultMaxActions, MaxValue: c.DefaultMaxValueUSD, Lifetime: c.DefaultExpiresAfter,
		},
	}, nil
}

func (c *serve) openStore(url string, tracer trace.Tracer, log *slog.Logger) (*redisstore.Store, error) {
	return redisstore.Open(redisstore.Config{
		URL: url, Durability: c.Durability, Retention: c.Retention, RefreshGrace: c.RefreshGrace, FamilyLifetime: c.FamilyLifetime, EventsKept: c.EventsKept, UsageKept: c.UsageKept,
		RefreshLifetime: token.RefreshLifetime, AccessLifetime: token.AccessLifetime,
		Quotas: c.Quotas, Rates: c.rates(),
		FollowsSuspensions: true, Tracer: tracer, Log: log, KeepsFeeds: true, RecordsDue: c.Due == "on",
	})
}
