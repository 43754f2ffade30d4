// Package monitoring tests deploy/prometheus and deploy/grafana. A service produces every metric, a real Prometheus scrapes it,
// and the tests check every query of the dashboard, every alert and every metric on the pages against the result.
package monitoring
