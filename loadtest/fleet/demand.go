package fleet

import (
	"math/rand/v2"
	"time"

	"remit/money"
)

// What the fleet requests, and how much its sessions allow. The number of the action or session determines both, so two
// runs with the same flags make the same requests.

const (
	// severalPercent of the actions count as 2 to 5, the others as 1. The mean is meanCount.
	severalPercent = 10
	meanCount      = 1.25

	// The shares of transactions that are committed for the held value, for less or for more, rolled back, and undone after
	// their commit. The others stay pending until the session's end rolls them back.
	asHeldPercent, lessPercent, morePercent, rolledBackPercent, undonePercent = 35, 25, 10, 20, 7

	// transactionLifetime is longer than the longest run, so that no transaction expires.
	transactionLifetime = 4 * time.Hour

	// topValue bounds the value of an action. The mean is about meanValue.
	topValue  = 5 * money.USD
	meanValue = 2.4e6 // micro-USD

	// In closed loop the pace is not known in advance. Every machine is between these bounds.
	slowestPace, fastestPace = 1000, 1_000_000 // actions per second

	// The service's bounds of a session's limits.
	maxSessionActions = 1_000_000_000
	maxSessionValue   = 1_000_000_000 * money.USD
)

var actionTypes = [...]string{"search", "tool_call", "payment", "message"}

// ending is how a transaction shall end.
type ending int

const (
	noTransaction ending = iota
	committed
	rolledBack
	undone      // rolled back after it was committed
	leftPending // until the session's end
)

// action is one task of an agent on a session, with its parameters.
type action struct {
	session   int // index in the fleet
	kind      string
	task      task
	requested charge // of a transaction: one action, and the held value
	ending    ending
	cost      money.MicroUSD // of a committed transaction
	batch     []batchItem    // of a batch
	draw      int            // decides which session of a tree, and which agent
}

// nthAction returns action k of a fleet. Its value has 0 to 6 decimals.
func nthAction(k int64, cfg config) action {
	r := rand.New(rand.NewPCG(uint64(k), 0))
	a := action{session: r.IntN(cfg.fleetSessions()), kind: actionTypes[r.IntN(len(actionTypes))]}
	a.requested = drawCharge(r)
	if cfg.scenario == trees {
		a.draw = r.IntN(1 << 30)
	}
	switch a.task = drawTask(r, cfg); a.task {
	case batches:
		a.batch = drawBatch(r, a.session, cfg)
	case transacts:
		a.requested.count = 1
		a.ending, a.cost = nthEnding(r, a.requested.value)
		if (a.ending == committed || a.ending == undone) && isTightInValue(a.session) {
			// Begin with little, which fits, and commit much, which exceeds the limit once the session is full.
			a.requested.value *= money.MicroUSD(r.IntN(2))
			a.cost = a.requested.value + topValue
		}
	}
	return a
}

// drawCharge draws one charge.
func drawCharge(r *rand.Rand) charge {
	c := charge{count: 1}
	if r.IntN(100) < severalPercent {
		c.count = 2 + r.Int64N(4)
	}
	unit := money.USD     // the last decimal place of this value
	for range r.IntN(7) { // up to 6 decimals
		unit /= 10
	}
	c.value = unit * money.MicroUSD(r.Int64N(int64(topValue/unit)))
	return c
}

// nthEnding draws how a transaction ends, and its cost if it is committed.
func nthEnding(r *rand.Rand, held money.MicroUSD) (e ending, cost money.MicroUSD) {
	n := r.IntN(100)
	for _, way := range []struct {
		percent int
		ending  ending
		cost    money.MicroUSD
	}{
		{asHeldPercent, committed, held},
		{lessPercent, committed, held / 3},
		{morePercent, committed, 2*held + 1},
		{rolledBackPercent, rolledBack, 0},
		{undonePercent, undone, held},
	} {
		if n < way.percent {
			return way.ending, way.cost
		}
		n -= way.percent
	}
	return leftPending, 0
}

// nthLimits returns the limits of session i. With n = rate · duration / sessions actions expected on each session, every
// tenth session allows half of the actions that n request, and every tenth half of the value, so both are full about
// half-way through the run. The others allow four times as much, and never fill up. If n is small, even a tight session may
// not fill up, and the run has no refusals.
func nthLimits(i int, cfg config) limits {
	slowest, fastest := cfg.rate, cfg.rate
	if cfg.rate == 0 {
		slowest, fastest = slowestPace, fastestPace
	}
	least, most := expected(slowest, cfg), expected(fastest, cfg)
	may := limits{
		actions: min(4*most.count+1000, maxSessionActions),
		value:   min(4*most.value+1000*money.USD, maxSessionValue),
	}
	switch {
	case isTightInActions(i):
		may.actions = max(least.count/2, 1)
	case isTightInValue(i):
		may.value = max(least.value/2, 1)
	}
	return may
}

func isTightInActions(session int) bool { return session%10 == 0 }
func isTightInValue(session int) bool   { return session%10 == 1 }

// expected returns the mean demand on one session at a pace in actions per second over the fleet.
func expected(pace int, cfg config) charge {
	n := float64(pace) * cfg.duration.Seconds() / float64(cfg.fleetSessions())
	return charge{count: int64(n * meanCount), value: money.MicroUSD(n * meanValue)}
}

// batchItem is one charge of a batch.
type batchItem struct {
	session   int // index in the fleet
	requested charge
}

// drawBatch draws the charges of a batch, on sessions of the same agent as the given one.
func drawBatch(r *rand.Rand, session int, cfg config) []batchItem {
	items := make([]batchItem, minBatch+r.IntN(maxBatch-minBatch+1))
	for i := range items {
		items[i] = batchItem{session%cfg.agents + cfg.agents*r.IntN(cfg.sessions), drawCharge(r)}
	}
	return items
}

// lateAction is the action sent to a session after its end.
var lateAction = action{kind: actionTypes[0], requested: charge{count: 1}}
