package budgets

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// A charge is counted without an allocation.
func TestCountingAChargeAllocatesNothing(t *testing.T) {
	c := newCounters(prometheus.NewRegistry())
	charge := redisstore.Charge{Count: 3, Value: 1_000_000}
	if made := testing.AllocsPerRun(100, func() { c.charged(charge, nil) }); made != 0 {
		t.Errorf("%v allocations", made)
	}
}

// What is charged is counted to the micro-dollar, and what is repeated once.
func TestChargesAreCountedByOutcome(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	c := newCounters(registry)
	replayed := new(redisstore.Idempotency)
	replayed.Outcome.Replayed = true
	c.charged(redisstore.Charge{Count: 2, Value: 1}, nil)
	c.charged(redisstore.Charge{Count: 1, Value: 1<<52 + 1}, nil)
	c.charged(redisstore.Charge{Count: 1, Value: 5, Idempotency: replayed}, nil)
	for _, err := range []error{
		&redisstore.LimitError{Limit: "max_actions"}, &redisstore.LimitError{Limit: "max_value_usd"},
		(&access.Guard{Front: new(web.Front)}).AtSubrequest(&redisstore.NotActiveError{}), &redisstore.ScopeError{}, &web.ScopeError{}, redisstore.ErrUnknownSession,
	} {
		c.charged(redisstore.Charge{Count: 1, Value: 7}, err)
	}
	c.batch([]error{nil, &web.ScopeError{}, access.ErrUnknownOrg}, []redisstore.BatchCharge{{Charge: redisstore.Charge{Count: 4}}}, []redisstore.ChargeOutcome{{}}, nil)
	c.batch([]error{nil}, []redisstore.BatchCharge{{Charge: redisstore.Charge{Count: 4}}}, []redisstore.ChargeOutcome{{}}, replayed)
	counted := gathered(t, registry)
	for series, want := range map[string]float64{
		"remit_charges_total outcome=allowed": 3, "remit_charges_total outcome=max_actions": 1, "remit_charges_total outcome=max_value_usd": 1,
		"remit_charges_total outcome=not_active": 1, "remit_charges_total outcome=scope": 3,
		"remit_actions_charged_total": 7, "remit_batch_items_total": 3,
		"remit_charged_micro_usd_total by=charge": 1<<52 + 2, "remit_charged_micro_usd_total by=transaction": 0,
	} {
		if value, exists := counted[series]; !exists || value != want {
			t.Errorf("%s: %v, want %v", series, value, want)
		}
	}
}

// gathered returns the values of all counters by name and label.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			name := family.GetName()
			for _, label := range series.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			values[name] = series.GetCounter().GetValue()
		}
	}
	return values
}
