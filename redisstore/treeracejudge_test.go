package redisstore

import (
	"errors"

	"remit/redisstore/internal/kernel"
)

// attempt is an operation on a session that is about to be sent, and what stood in its way then.
type attempt struct {
	what   string
	on     *racedNode
	isOver bool
	gates  []*racedGate
	since  []racedGate
}

// attempt begins an operation. settles says that a suspension does not forbid it.
func (r *racedTree) attempt(what string, on *racedNode, settles bool, more ...*racedGate) *attempt {
	r.lock.Lock()
	defer r.lock.Unlock()
	a := &attempt{what: what, on: on}
	on.path(func(at *racedNode) {
		a.isOver = a.isOver || at.isOver
		a.gates = append(a.gates, &at.suspension)
	})
	if a.gates = append(append(a.gates, &on.agent.suspension), more...); settles {
		a.gates, a.isOver = nil, a.isOver && !on.mayExpire // what has expired is not ended, and its transactions may settle
	}
	for _, g := range a.gates {
		a.since = append(a.since, *g)
	}
	return a
}

// outcome judges the outcome of an operation. With the lock it calls did or didNot, or mayHave if there was no answer.
func (r *racedTree) outcome(a *attempt, err error, did, didNot, mayHave func()) {
	r.lock.Lock()
	defer r.lock.Unlock()
	suspended, free := false, true
	for i, g := range a.gates {
		suspended, free = suspended || g.stayed(a.since[i], shut), free && g.stayed(a.since[i], open)
	}
	var pending *NotPendingError
	var inactive *NotActiveError
	switch {
	case err == nil && a.isOver:
		r.t.Errorf("%s: done after the end was acknowledged", a.what)
	case err == nil && suspended:
		r.t.Errorf("%s: done after the suspension was acknowledged", a.what)
	case err == nil:
	case kernel.IsSuspended(err) && !free, errors.Is(err, kernel.ErrGivenUp) && (a.on.mayBeOver || !free):
	case (errors.As(err, &inactive) || errors.As(err, &pending)) && a.on.mayBeOver:
	case errors.Is(err, kernel.ErrGivenUp):
		r.t.Errorf("%s: given up without a reason", a.what)
	case isForLimits(err):
	case isUnanswered(err):
		r.unanswered[a.what]++
		mayHave()
		return
	default:
		r.t.Errorf("%s: %v", a.what, err)
	}
	if err != nil {
		r.refused[a.what]++
		didNot()
		return
	}
	r.done[a.what]++
	did()
}

// isUnanswered says whether Redis did not answer in time, as on a machine that is too busy, so that it is not known what was done.
func isUnanswered(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown)
}

func nothing() {}

func isForLimits(err error) bool {
	var limit *LimitError
	var budget *BudgetError
	return errors.As(err, &limit) || errors.As(err, &budget)
}
