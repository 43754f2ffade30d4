package metrics

import "github.com/prometheus/client_golang/prometheus"

// Counter registers a counter that starts at 0. Prometheus would miss the first increase of a counter that appears with 1.
func Counter(registry prometheus.Registerer, name, help string, labels prometheus.Labels) prometheus.Counter {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	registry.MustRegister(counter)
	return counter
}

// Counters registers one counter for each value of a label.
func Counters(registry prometheus.Registerer, name, help, label string, byValue map[string]*prometheus.Counter) {
	for value, counter := range byValue {
		*counter = Counter(registry, name, help, prometheus.Labels{label: value})
	}
}
