package budgets

import (
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"remit/internal/metrics"
	"remit/redisstore"
)

// counters count what the operations of this package do, as their help says.
type counters struct {
	sessionsCreated, sessionsEnded prometheus.Counter
	begun, committed, rolledBack   prometheus.Counter
	charges                        chargeMetrics
	leases                         leaseMetrics
	holds                          holdMetrics
	requests                       requestMetrics
	batchItems                     prometheus.Counter
}

// leaseMetrics count leases. What expires unsettled is counted by the store.
type leaseMetrics struct{ granted, settled, overage prometheus.Counter }

// holdMetrics count the holds of transactions. What expires unsettled is counted by the store.
type holdMetrics struct {
	opened, committed, rolledBack, late prometheus.Counter
	duration                            prometheus.Histogram
}

// holdDurations are the bounds in seconds of how long a hold is open. A hold lasts 5 minutes unless its agent asks for another
// time, and 30 days at most.
var holdDurations = []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 21600, 86400}

// requestMetrics count requests for more than the limits of sessions, and what became of them.
type requestMetrics struct{ made, approved, denied prometheus.Counter }

func newCounters(registry prometheus.Registerer) *counters {
	c := &counters{}
	c.sessionsCreated = metrics.Counter(registry, "remit_sessions_created_total", "Sessions created.", nil)
	c.sessionsEnded = metrics.Counter(registry, "remit_sessions_ended_total", "Requests that ended a session, repeated ones included.", nil)
	metrics.Counters(registry, "remit_transactions_total", "Transactions begun, committed and rolled back.", "event", map[string]*prometheus.Counter{
		"begun": &c.begun, "committed": &c.committed, "rolled_back": &c.rolledBack,
	})
	all := &c.charges
	const outcomes = "Charges, by outcome: allowed, or the limit that refused them."
	metrics.Counters(registry, "remit_charges_total", outcomes, "outcome", map[string]*prometheus.Counter{
		"allowed": &all.allowed, "not_active": &all.notActive, "suspended": &all.suspended, "scope": &all.scope,
	})
	all.byLimit = byLimit(registry, "remit_charges_total", outcomes, "outcome", limitsOfAmount...)
	all.actions = metrics.Counter(registry, "remit_actions_charged_total", "Actions charged by charges, begins in sessions and settled leases.", nil)
	metrics.Counters(registry, "remit_charged_micro_usd_total", "Value charged, in millionths of a US dollar. Rollbacks do not lower it.", "by",
		map[string]*prometheus.Counter{"charge": &all.byCharges, "transaction": &all.byTransactions, "lease": &all.byLeases})
	metrics.Counters(registry, "remit_reserved_micro_usd_total", "Value reserved by begins in sessions and by leases, in millionths of a US dollar.", "by",
		map[string]*prometheus.Counter{"transaction": &all.inHolds, "lease": &all.inLeases})
	all.observed = byLimit(registry, "remit_observed_refusals_total",
		"What a limit would have refused in sessions that observe: charges, begins, raised holds, leases.", "limit", limitsOfAmount...)
	all.byAgent = byLimit(registry, "remit_agent_limit_refusals_total",
		"What a limit of the agent refused: charges, begins, raised holds, leases, renewals, sessions.", "limit",
		redisstore.LimitValuePerDay, redisstore.LimitActionsPerMinute, redisstore.LimitOpenSessions)
	c.leases.granted = metrics.Counter(registry, "remit_leases_granted_total", "Leases granted, renewals included.", nil)
	c.leases.settled = metrics.Counter(registry, "remit_leases_settled_total", "Leases settled, late ones included, repetitions excluded.", nil)
	c.leases.overage = metrics.Counter(registry, "remit_lease_overage_micro_usd_total",
		"Value that settlements reported beyond what their sessions allowed, in millionths of a US dollar.", nil)
	metrics.Counters(registry, "remit_holds_total", "Holds of transactions in sessions, by what became of them.", "event", map[string]*prometheus.Counter{
		"opened": &c.holds.opened, "committed": &c.holds.committed, "rolled_back": &c.holds.rolledBack, "committed_late": &c.holds.late,
	})
	c.holds.duration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "remit_hold_duration_seconds", Help: "How long holds were open when they were committed in time or rolled back.", Buckets: holdDurations,
	})
	registry.MustRegister(c.holds.duration)
	metrics.Counters(registry, "remit_session_requests_total", "Requests for more than the limits of sessions, by what happened: made, approved, denied.", "event",
		map[string]*prometheus.Counter{"made": &c.requests.made, "approved": &c.requests.approved, "denied": &c.requests.denied})
	c.batchItems = metrics.Counter(registry, "remit_batch_items_total", "Charges received in batches, malformed ones included.", nil)
	return c
}

// byLimit registers one counter for each of these limits, as values of a label.
func byLimit(registry prometheus.Registerer, name, help, label string, limits ...string) limitCounters {
	counters := make(limitCounters, len(limits))
	for _, limit := range limits {
		counters[limit] = metrics.Counter(registry, name, help, prometheus.Labels{label: limit})
	}
	return counters
}

// settled counts the settlement of a lease, unless it was settled before.
func (c *counters) settled(v redisstore.Settlement) {
	if v.Repeated {
		return
	}
	c.leases.settled.Inc()
	c.leases.overage.Add(float64(v.Overage))
	c.charges.actions.Add(float64(v.ActionCount - v.OverageActions))
	c.charges.byLeases.Add(float64(v.ValueUsed - v.Overage + v.ChargedOverage))
	if v.Renewed != nil {
		c.leases.granted.Inc()
		c.charges.inLeases.Add(float64(v.Renewed.MaxValue))
	}
	c.charges.byAgent.count(v.Limit)
}

// transaction counts a transaction on the counter of its new status, unless its outcome is replayed.
func (c *counters) transaction(reached prometheus.Counter, t redisstore.Transaction, idempotency *redisstore.Idempotency) {
	if idempotency.IsReplay() {
		return
	}
	reached.Inc()
	if t.Session == uuid.Nil {
		return
	}
	switch t.Status {
	case redisstore.Pending:
		c.charges.actions.Inc()
		c.charges.inHolds.Add(float64(t.Held))
	case redisstore.Committed:
		c.charges.byTransactions.Add(float64(t.Value))
	}
	c.holds.count(t)
}

// count counts what became of a transaction's hold. A late commit and the rollback of a commit find none.
func (h *holdMetrics) count(t redisstore.Transaction) {
	switch {
	case t.Status == redisstore.Pending:
		h.opened.Inc()
	case t.Late && t.Status == redisstore.Committed:
		h.late.Inc()
	case t.Status == redisstore.Committed:
		h.committed.Inc()
		h.duration.Observe(t.Committed.Sub(t.Created).Seconds())
	case t.Committed.IsZero():
		h.rolledBack.Inc()
		h.duration.Observe(t.RolledBack.Sub(t.Created).Seconds())
	}
}
