package redistest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Gathered returns the values of one of the collector's metrics by the values of their labels, and the number of
// observations of a histogram.
func Gathered(t *testing.T, c prometheus.Collector, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	values := map[string]float64{}
	for _, family := range Must(registry.Gather())(t) {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := ""
			for _, label := range series.GetLabel() {
				labels += label.GetValue() + " "
			}
			values[labels] = series.GetGauge().GetValue() + series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount())
		}
	}
	return values
}
