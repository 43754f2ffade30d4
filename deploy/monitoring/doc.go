// Package monitoring holds the tests of what stands beside it, deploy/prometheus and deploy/grafana: a service does all
// that is counted, a real Prometheus scrapes it, and every query of the dashboard, every alert and every line of
// docs/metrics.md is held against what it has.
package monitoring
