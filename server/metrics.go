package server

import (
	"cmp"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"remit/redisstore"
)

// newRegistry returns a registry with the metrics of the process and the store; the parts of the server add theirs.
// No label has a value that a client chose.
func newRegistry(store *redisstore.Store) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if store != nil {
		registry.MustRegister(store)
	}
	return registry
}

// registerGauges registers the values that are read at each scrape.
func registerGauges(registry prometheus.Registerer, version string, connections, waiters func() int) {
	now := func(name, help string, value func() int) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
	}
	now("remit_http_connections_open", "Open connections, those of a separate metrics listener excluded.", connections)
	now("remit_event_waiters", "Requests that wait for events or for a decision, event streams included.", waiters)
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "remit_build_info", Help: "1, with the versions of the build.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(version, "unknown"), "goversion": strings.Fields(runtime.Version())[0]},
	}, func() float64 { return 1 }))
}
