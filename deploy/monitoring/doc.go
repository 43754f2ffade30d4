// Package monitoring tests deploy/prometheus and deploy/grafana. A service produces every metric, a real Prometheus scrapes it,
// and the tests check every query of the dashboard, every alert and every line of docs/metrics.md against the result.
package monitoring
