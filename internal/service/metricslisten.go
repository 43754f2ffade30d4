package service

import (
	"fmt"
	"log/slog"
	"net"

	"remit/server"
)

// metricsFlags say where the metrics are served.
type metricsFlags struct {
	MetricsListen string `help:"Address that serves only /metrics and /healthz, over plain HTTP. Without it --listen serves /metrics."`
}

// listen returns nil without --metrics-listen.
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

// serveMetrics serves the metrics in the background until the service stops. A nil listener does nothing.
func serveMetrics(log *slog.Logger, service *server.Server, listener net.Listener) {
	if listener == nil {
		return
	}
	log.Info("metrics", "url", localURL("http", listener.Addr())+"/metrics")
	go func() {
		if err := service.ServeMetrics(listener); err != nil {
			log.Error("the metrics listener failed", "cause", err)
		}
	}()
}
