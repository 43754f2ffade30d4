package client

import (
	"time"

	"remit/money"
)

const (
	// grantTime is how long a grant should last at the present pace.
	grantTime = time.Second
	// firstActions is the size of the first grant, and the least that later ones ask for.
	firstActions = 16
	// growth bounds how a grant's size follows that of the one before, either way.
	growth = 8
	// share is the part of what remains in a session that one grant takes at most: 1/share.
	share = 8
	// worthwhile is how many charges of the size in question a grant must hold. Otherwise they go to the session.
	worthwhile = 4
	// A session's budget as last seen counts for this long, and if a grant is a small part of it.
	budgetAge, smallPart = 10 * time.Second, 16
	// freshAge is the age up to which a budget is not read again in any case.
	freshAge = 100 * time.Millisecond
)

// budget is what remained in the session when the service last said it, less what this lease was granted since.
type budget struct {
	left amount
	at   time.Duration
}

func (b *budget) see(left amount, now time.Duration) {
	*b = budget{left.most(amount{}), now}
}

func (b *budget) add(a amount)  { b.left = b.left.plus(a) }
func (b *budget) take(a amount) { b.left = b.left.minus(a).most(amount{}) }

// isStale reports whether to read the session before a grant of this size.
func (b *budget) isStale(ask amount, now time.Duration) bool {
	age := now - b.at
	return age > budgetAge || age > freshAge && !b.left.covers(ask.times(smallPart))
}

// measure returns what is charged in a grantTime, by what was charged to g so far.
func (g *grant) measure(now time.Duration) amount {
	used := g.used()
	elapsed := min(max(now-g.since, grantTime/growth), grantTime*growth).Microseconds()
	period := grantTime.Microseconds()
	pace := amount{used.actions * period / elapsed, used.value * money.MicroUSD(period) / money.MicroUSD(elapsed)}
	if pace.actions < firstActions && used.actions > 0 {
		pace = amount{firstActions, used.value / money.MicroUSD(used.actions) * firstActions}.most(pace)
	}
	return pace
}

// size returns what to ask for, so that a charge of this need fits in, and whether that is worth a grant. A need of nothing
// means that no charge waits. Called with mu held.
func (l *Lease) size(need amount, now time.Duration) (amount, bool) {
	want := l.present(now)
	most := amount{min(l.budget.left.actions/share, maxGrantActions), min(l.budget.left.value/share, maxGrantValue)}
	ask := want.most(need.times(growth)).least(most)
	need.actions = max(need.actions, 1)
	return ask, ask.covers(need.times(worthwhile))
}

// present returns the present pace: that of the current grant, or for as long as that is young, of the one before. Called with
// mu held.
func (l *Lease) present(now time.Duration) amount {
	pace := l.pace.most(amount{actions: firstActions})
	g := l.current.Load()
	switch {
	case g == nil || g.used().isZero():
		return pace
	case now-g.since < grantTime/4:
		return pace.most(g.measure(now))
	default:
		return g.measure(now)
	}
}

// remainder is what remains of a session.
func (i *SessionInfo) remainder() amount {
	left := amount{i.MaxActions - i.ActionCount - i.ActionsDelegated, i.MaxValue - i.ValueUsed - i.ValueHeld - i.ValueDelegated}
	if i.MaxCommitted != nil {
		left.value = min(left.value, *i.MaxCommitted-i.ValueCommitted-i.ValueHeld)
	}
	return left
}
