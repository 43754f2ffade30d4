package service

import (
	"log/slog"
	"net"

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
