package budgets

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
	"remit/test/redistest"
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
	for name, want := range map[string]map[string]float64{
		"remit_charges_total":         {"allowed ": 3, "max_actions ": 1, "max_value_usd ": 1, "not_active ": 1, "scope ": 3},
		"remit_actions_charged_total": {"": 7}, "remit_batch_items_total": {"": 3},
		"remit_charged_micro_usd_total": {"charge ": 1<<52 + 2, "transaction ": 0},
	} {
		counted := redistest.Gathered(t, registry, name)
		for labels, value := range want {
			if got, exists := counted[labels]; !exists || got != value {
				t.Errorf("%s %s: %v, want %v", name, labels, got, value)
			}
		}
	}
}
