package budgets

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"remit/redisstore"
	"remit/server/internal/web"
)

// chargeMetrics count charges by outcome, whether they came alone, in a batch or from a proxy.
type chargeMetrics struct {
	allowed, notActive, suspended, scope prometheus.Counter

	byLimit                   limitCounters // refused, by the limit of the session or its agent
	actions                   prometheus.Counter
	byCharges, byTransactions prometheus.Counter // micro-USD
	byLeases                  prometheus.Counter
	inHolds, inLeases         prometheus.Counter // micro-USD reserved

	observed limitCounters // by the limit that would have refused
	byAgent  limitCounters // what limits of agents refused, charges or not
}

// limitCounters count by limit.
type limitCounters map[string]prometheus.Counter

// count counts one, unless the limit has no counter.
func (c limitCounters) count(limit string) {
	if counter := c[limit]; counter != nil {
		counter.Inc()
	}
}

// limitsOfAmount are the limits that refuse charges.
var limitsOfAmount = []string{"max_actions", "max_value_usd", "max_committed_usd", "max_value_usd_per_action",
	redisstore.LimitValuePerDay, redisstore.LimitActionsPerMinute}

// charged counts the outcome of a charge, unless it is a dry run or replayed from an earlier request.
func (c *counters) charged(wanted redisstore.Charge, err error) {
	if wanted.DryRun || wanted.Idempotency.IsReplay() {
		return
	}
	all := &c.charges
	if err == nil {
		all.allowed.Inc()
		all.actions.Add(float64(wanted.Count))
		all.byCharges.Add(float64(wanted.Value)) // whole and below 2^53, so exact
		return
	}
	all.refused(err)
	c.refusedByAgent(err)
}

// refusedByAgent counts what a limit of the agent refused. Dry runs do not count.
func (c *counters) refusedByAgent(err error) {
	var limit *redisstore.AgentLimitError
	if errors.As(err, &limit) {
		c.charges.byAgent.count(limit.Limit)
	}
}

// observed counts what a limit would have refused in a session that observes, unless it is "", or it is a dry run or replayed.
func (c *counters) observed(limit string, dryRun bool, idempotency *redisstore.Idempotency) {
	if !dryRun && !idempotency.IsReplay() {
		c.charges.observed.count(limit)
	}
}

// batch counts the charges of a batch. The idempotency key belongs to the batch, not to its charges.
func (c *counters) batch(refused []error, wanted []redisstore.BatchCharge, outcomes []redisstore.ChargeOutcome, idempotency *redisstore.Idempotency) {
	if idempotency.IsReplay() {
		return
	}
	c.batchItems.Add(float64(len(refused)))
	for _, err := range refused {
		if err != nil {
			c.charges.refused(err)
		}
	}
	for i, outcome := range outcomes {
		c.charged(wanted[i].Charge, outcome.Err)
		c.observed(outcome.Usage.WouldRefuse, false, nil)
	}
}

// refused counts a charge that a limit of its session or agent refused. Other errors concern the request and are not counted here.
func (c *chargeMetrics) refused(err error) {
	var limit *redisstore.LimitError
	var agentLimit *redisstore.AgentLimitError
	var notActive *redisstore.NotActiveError
	var agent *redisstore.AgentSuspendedError
	var session *redisstore.SessionSuspendedError
	var held *redisstore.ScopeError
	var scope *web.ScopeError
	switch {
	case errors.As(err, &limit):
		c.byLimit.count(limit.Limit)
	case errors.As(err, &agentLimit):
		c.byLimit.count(agentLimit.Limit)
	case errors.As(err, &notActive):
		c.notActive.Inc()
	case errors.As(err, &agent), errors.As(err, &session):
		c.suspended.Inc()
	case errors.As(err, &held), errors.As(err, &scope):
		c.scope.Inc()
	}
}
