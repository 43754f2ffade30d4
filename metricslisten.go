package main

import (
	"fmt"
	"log/slog"
	"net"

	"remit/server"
)

// metricsFlags say where the metrics are.
type metricsFlags struct {
	MetricsListen string `help:"Address to answer /metrics on, by plain HTTP, with /healthz and nothing else. Without it /metrics is at --listen."`
}

// listen returns nil when the metrics have no listener of their own.
func (f metricsFlags) listen() (net.Listener, error) {
	if f.MetricsListen == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", f.MetricsListen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s for metrics: %w", f.MetricsListen, err)
	}
	return listener, nil
}

// serveMetrics answers on the listener, if there is one, until the service stops.
func serveMetrics(log *slog.Logger, service *server.Server, listener net.Listener) {
	if listener == nil {
		return
	}
	log.Info("metrics", "url", ownURL("http", listener.Addr())+"/metrics")
	go func() {
		if err := service.ServeMetrics(listener); err != nil {
			log.Error("metrics are not served any more", "cause", err)
		}
	}()
}
