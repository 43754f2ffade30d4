package webhook

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"remit/test/suite"
)

func TestMain(m *testing.M) {
	suite.RunAtOnce(4)
	goleak.VerifyTestMain(m)
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var eventually = suite.Eventually

func (o *organizationWithHooks) wantMetric(t *testing.T, what string, metric prometheus.Metric, want float64) {
	t.Helper()
	eventually(t, what, func() bool { return valueOf(t, metric) == want })
}

func valueOf(t *testing.T, metric prometheus.Metric) float64 {
	t.Helper()
	var now dto.Metric
	must(0, metric.Write(&now))(t)
	return now.GetCounter().GetValue() + now.GetGauge().GetValue()
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
