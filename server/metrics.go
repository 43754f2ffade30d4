package server

import (
	"cmp"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"remit/redisstore"
)

// counts are what the server counts as it goes: what is asked is in counted.go. docs/metrics.md says what each means. No
// label has a value that a client chose.
type counts struct {
	registry *prometheus.Registry
	requests *requestCounts

	tokensBySecret, tokensByRefresh prometheus.Counter
	tokensReused, familiesRevoked   prometheus.Counter
	tokensReplayed                  prometheus.Counter

	organizationsCreated, agentsCreated, agentsRevoked prometheus.Counter

	sessionsCreated, sessionsEnded      prometheus.Counter
	begun, committed, rolledBack        prometheus.Counter
	charges                             chargeCounts
	batchItems, replays, panics         prometheus.Counter
	limitedOrganizations, limitedTokens prometheus.Counter
	tokenHits, tokenMisses              atomic.Uint64 // of the verified tokens; a verifier comes and goes with its keyring
	shed                                atomic.Uint64
}

// chargeCounts are what charges came to, be they alone, in a batch or from a gateway.
type chargeCounts struct {
	allowed, maxActions, maxValue, maxCommitted, notActive, scope prometheus.Counter

	actions                   prometheus.Counter
	byCharges, byTransactions prometheus.Counter // micro-USD
}

func newCounts(store *redisstore.Store, version string, connections, waiters func() int) *counts {
	c := &counts{registry: prometheus.NewRegistry()}
	c.requests = newRequestCounts(c.registry)
	c.countTokens()
	c.countSessions()
	c.countTroubles()
	c.look(version, connections, waiters)
	c.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if store != nil {
		c.registry.MustRegister(store)
	}
	return c
}

// counter registers a counter, which is 0 at first: of one that is there only once it is 1, nobody sees the step.
func (c *counts) counter(name, help string, labels prometheus.Labels) prometheus.Counter {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	c.registry.MustRegister(counter)
	return counter
}

// counters registers a counter for each value of a label.
func (c *counts) counters(name, help, label string, byValue map[string]*prometheus.Counter) {
	for value, counter := range byValue {
		*counter = c.counter(name, help, prometheus.Labels{label: value})
	}
}

func (c *counts) countTokens() {
	c.counters("remit_tokens_issued_total", "Token pairs issued, by what was given for them.", "grant",
		map[string]*prometheus.Counter{"client_secret": &c.tokensBySecret, "refresh_token": &c.tokensByRefresh})
	c.tokensReused = c.counter("remit_refresh_tokens_reused_total",
		"Refresh tokens that were used again after their grace time: a theft, or a client that keeps old ones. Their families are revoked.", nil)
	c.tokensReplayed = c.counter("remit_refresh_tokens_replayed_total",
		"Spent refresh tokens that were answered again within their grace time: a lost answer, processes that share a token, or a theft.", nil)
	c.familiesRevoked = c.counter("remit_token_families_revoked_total",
		"Token families revoked by request, repetitions too. Without those of revoke_families.", nil)
	c.organizationsCreated = c.counter("remit_organizations_created_total", "Organizations created.", nil)
	c.agentsCreated = c.counter("remit_agents_created_total", "Agents created.", nil)
	c.agentsRevoked = c.counter("remit_agents_revoked_total", "Revocations of agents, repeated ones too.", nil)
}

func (c *counts) countSessions() {
	c.sessionsCreated = c.counter("remit_sessions_created_total", "Sessions created.", nil)
	c.sessionsEnded = c.counter("remit_sessions_ended_total", "Sessions ended by a caller, repetitions too. Those whose time ran out are not counted.", nil)
	c.counters("remit_transactions_total", "Transactions begun, committed and rolled back.", "event", map[string]*prometheus.Counter{
		"begun": &c.begun, "committed": &c.committed, "rolled_back": &c.rolledBack,
	})
	all := &c.charges
	c.counters("remit_charges_total", "Charges, by whether they were allowed or what refused them.", "outcome", map[string]*prometheus.Counter{
		"allowed": &all.allowed, "max_actions": &all.maxActions, "max_value_usd": &all.maxValue, "max_committed_usd": &all.maxCommitted,
		"not_active": &all.notActive, "scope": &all.scope,
	})
	all.actions = c.counter("remit_actions_charged_total", "Actions charged, by charges and by the beginning of transactions in sessions.", nil)
	c.counters("remit_charged_micro_usd_total", "Value charged in millionths of a US dollar. What a rollback gives back is not taken off.", "by",
		map[string]*prometheus.Counter{"charge": &all.byCharges, "transaction": &all.byTransactions})
	c.batchItems = c.counter("remit_batch_items_total", "Charges that came in batches, well-formed or not.", nil)
	c.replays = c.counter("remit_idempotent_replays_total", "Requests that were answered with the outcome of an earlier one, by their idempotency key.", nil)
}

func (c *counts) countTroubles() {
	c.counters("remit_rate_limited_total", "Requests refused because too many came from their address, by limit.", "limit",
		map[string]*prometheus.Counter{"organizations": &c.limitedOrganizations, "failed-auth": &c.limitedTokens})
	c.panics = c.counter("remit_panics_total", "Panics that were turned into a 500, or ended a stream.", nil)
}

// look registers what is asked for when somebody scrapes.
func (c *counts) look(version string, connections, waiters func() int) {
	now := func(name, help string, value func() int) {
		c.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
	}
	total := func(name, help string, labels prometheus.Labels, value *atomic.Uint64) {
		c.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value.Load()) }))
	}
	now("remit_http_connections_open", "Open connections, without those of an own metrics listener.", connections)
	now("remit_event_waiters", "Requests that wait for events, streams too.", waiters)
	const verified = "Access tokens that were found good, by whether their signature was checked before (hit) or now (miss)."
	total("remit_access_tokens_verified_total", verified, prometheus.Labels{"cache": "hit"}, &c.tokenHits)
	total("remit_access_tokens_verified_total", verified, prometheus.Labels{"cache": "miss"}, &c.tokenMisses)
	total("remit_shed_total", "Calls that were turned away, unsent, because too many wait for Redis or it has stopped answering.", nil, &c.shed)
	c.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "remit_build_info", Help: "1, with what the service was built of.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(version, "unknown"), "goversion": strings.Fields(runtime.Version())[0]},
	}, func() float64 { return 1 }))
}

// charged counts a charge that came to this, unless it only heard again what came of an earlier one.
func (c *counts) charged(wanted redisstore.Charge, err error) {
	if !isNew(wanted.Idempotency) {
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
}

// isNew says that what was done was not done for an earlier request with the same idempotency key.
func isNew(once *redisstore.Idempotency) bool { return once == nil || !once.Replayed }

// transaction counts one that has got to where it is now.
func (c *counts) transaction(there prometheus.Counter, t redisstore.Transaction, once *redisstore.Idempotency) {
	if !isNew(once) {
		return
	}
	there.Inc()
	if t.Session == uuid.Nil {
		return
	}
	switch t.Status {
	case redisstore.Pending:
		c.charges.actions.Inc()
	case redisstore.Committed:
		c.charges.byTransactions.Add(float64(t.Value))
	}
}

// batch counts what a batch came to, whose own charges know nothing of its idempotency key.
func (c *counts) batch(refused []error, wanted []redisstore.BatchCharge, outcomes []redisstore.ChargeOutcome, once *redisstore.Idempotency) {
	if !isNew(once) {
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
	}
}

// refused counts what the limits of a session refused. All other errors are of the request.
func (c *chargeCounts) refused(err error) {
	var limit *redisstore.LimitError
	var notActive *redisstore.NotActiveError
	var held *redisstore.ScopeError
	var scope *scopeError
	switch {
	case errors.As(err, &limit) && limit.Limit == "max_actions":
		c.maxActions.Inc()
	case errors.As(err, &limit) && limit.Limit == "max_committed_usd":
		c.maxCommitted.Inc()
	case errors.As(err, &limit):
		c.maxValue.Inc()
	case errors.As(err, &notActive):
		c.notActive.Inc()
	case errors.As(err, &held), errors.As(err, &scope):
		c.scope.Inc()
	}
}
