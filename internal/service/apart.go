package service

import (
	"fmt"
	"log/slog"
	"net"
)

// metricsFlags say where the metrics are served.
type metricsFlags struct {
	MetricsListen string `help:"Address that serves only /metrics and /healthz, over plain HTTP. Without it --listen serves /metrics."`
}

// listenApart returns a listener of its own for a part of what is served, nil without an address.
func listenApart(address, part string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s for %s: %w", address, part, err)
	}
	return listener, nil
}

// serveApart serves on a named listener in the background until the service stops. A nil listener does nothing.
func serveApart(log *slog.Logger, name string, listener net.Listener, serve func(net.Listener) error) {
	if listener == nil {
		return
	}
	go func() {
		if err := serve(listener); err != nil {
			log.Error(name+" failed", "cause", err)
		}
	}()
}
