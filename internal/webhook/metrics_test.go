package webhook

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"remit/redisstore/webhooks"
)

// wantMetric fails unless the metric has this value in the end.
func (o *organizationWithHooks) wantMetric(t *testing.T, what string, metric prometheus.Metric, want float64) {
	t.Helper()
	eventually(t, what, func() bool { return valueOf(t, metric) == want })
}

// valueOf returns the value of a counter or a gauge.
func valueOf(t *testing.T, metric prometheus.Metric) float64 {
	t.Helper()
	var now dto.Metric
	must(0, metric.Write(&now))(t)
	return now.GetCounter().GetValue() + now.GetGauge().GetValue()
}

func TestWhatBecomesOfAttemptsIsCounted(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.refuses(func(n int64) bool { return n == 2 })
	o := newOrganizationWithHooks(t, r.URL)
	at := time.Now()
	o.redis.SetTime(at)
	d, _ := o.deliver(t)
	o.happen(t, 3)
	o.wantMetric(t, "two are delivered", d.metrics.delivered, 2)
	o.wantMetric(t, "one failed", d.metrics.failed, 1)
	o.redis.SetTime(at.Add(25 * time.Hour))
	o.wantMetric(t, "one is given up", d.metrics.dead, 1)
	o.wantMetric(t, "it rests", d.metrics.organizations, 0)
	collected := make(chan prometheus.Metric, 10)
	if d.Collect(collected); len(collected) != 7 {
		t.Errorf("%d series", len(collected))
	}
	if dead := o.deliveries(t, 0, webhooks.DeliveryDead); len(dead) != 1 || dead[0].Event != 2 {
		t.Errorf("given up are %+v", dead)
	}
}
