package main

import (
	"net/http"
	"slices"

	"remit/client"
)

// stepFact is one step of a transaction: its begin, its commit or its rollback.
type stepFact struct {
	transaction string // empty: the begin, whose answer says it
	session     string
	limits      limits
	hold        micros
	requested   micros // of a commit: what it cost
	reply       reply
	window      // from the ledger
}

// checkBegin judges the begin of a transaction by its answer. The sequence number counts the begins before it, and
// those under way with it may come first.
func checkBegin(f stepFact) []violation {
	switch f.reply.outcome() {
	case refused:
		return checkRefused(actionFact{
			session: f.session, limits: f.limits, requested: charge{1, f.hold}, reply: f.reply, window: f.window,
		})
	case unknown:
		return checkUnanswered(f.session, f.reply)
	}
	t, err := readTransaction(f.reply)
	if err != nil || f.reply.status != http.StatusCreated {
		return []violation{found(ruleUnreadable, f.session, "begin answered %d: %v", f.reply.status, err)}
	}
	var out []violation
	if t.Session != f.session || t.Status != statusPending || t.ValueHeld != f.hold || t.Overage != 0 {
		out = append(out, found(ruleStep, f.session, "begin answered session %s, %s, %s held of %s, %s over",
			t.Session, t.Status, t.ValueHeld, f.hold, t.Overage))
	}
	if t.Sequence <= f.before.begun || t.Sequence > f.possible.begun {
		out = append(out, found(ruleSequence, f.session, "begin is number %d, after %d acknowledged and of %d sent",
			t.Sequence, f.before.begun, f.possible.begun))
	}
	return out
}

// checkCommit judges a commit by its answer: all that it cost is charged, and what does not fit is recorded as over. The
// hold always fits, and the rest unless the session is full.
func checkCommit(f stepFact) []violation {
	t, out := checkOutcome(f, statusCommitted)
	if len(out) > 0 || f.reply.outcome() != acknowledged {
		return out
	}
	if t.Value+t.Overage != f.requested || t.Value < min(f.requested, f.hold) {
		out = append(out, found(ruleStep, f.transaction, "commit of %s USD, of which %s were held: %s charged, %s over",
			f.requested, f.hold, t.Value, t.Overage))
	}
	if most := f.most(); t.Overage > 0 && most.used+most.held < f.limits.value {
		out = append(out, found(ruleRefusal, f.transaction, "%s USD over, with at most %s of %s USD used and held",
			t.Overage, most.used+most.held, f.limits.value))
	}
	return out
}

// checkRollback judges a rollback by its answer.
func checkRollback(f stepFact) []violation {
	_, out := checkOutcome(f, statusRolledBack)
	return out
}

// checkOutcome judges what commits and rollbacks have in common. Nothing refuses them: no transaction is settled twice
// or outlives its time.
func checkOutcome(f stepFact, status string) (transactionAnswer, []violation) {
	switch f.reply.outcome() {
	case refused:
		return transactionAnswer{}, []violation{found(ruleStatus, f.transaction, "to be %s: refused with %s", status, f.reply)}
	case unknown:
		return transactionAnswer{}, checkUnanswered(f.transaction, f.reply)
	}
	t, err := readTransaction(f.reply)
	if err != nil || f.reply.status != http.StatusOK {
		return t, []violation{found(ruleUnreadable, f.transaction, "to be %s: answered %d: %v", status, f.reply.status, err)}
	}
	if t.ID != f.transaction || t.Status != status || t.ValueHeld != 0 {
		return t, []violation{found(ruleStep, f.transaction, "to be %s: answered id %s, %s, %s held", status, t.ID, t.Status, t.ValueHeld)}
	}
	return t, nil
}

// register sums up the transactions of a session as the service lists them when the session has ended.
type transactionList struct {
	listed      int64
	numbers     []int64 // as they were listed
	unsettled   int64   // neither committed nor rolled back, or still holding
	committed   int64
	spent, over micros // by the committed
}

// enter adds a transaction of the list.
func (r *transactionList) enter(t client.TransactionInfo) {
	r.listed++
	r.numbers = append(r.numbers, t.SequenceNumber)
	switch {
	case t.ValueHeld != 0, t.Status != statusCommitted && t.Status != statusRolledBack:
		r.unsettled++
	case t.Status == statusCommitted:
		r.committed++
		r.spent += micros(t.Value)
		r.over += micros(t.Overage)
	}
}

// firstGap is the place, from 1, where the sequence numbers in order do not go on; 0 if they are 1, 2, 3 and so on. The
// list is in the order of ids, which transactions get before their numbers.
func (r *transactionList) firstGap() int {
	for i, n := range slices.Sorted(slices.Values(r.numbers)) {
		if n != int64(i+1) {
			return i + 1
		}
	}
	return 0
}

// transactionsFact is what was learnt of a session's transactions when it had ended.
type transactionsFact struct {
	session string
	window  // from the ledger
	transactionList
	after reply // the session as it was read then
	err   error // of listing them
}

// checkTransactions judges the transactions of an ended session, against the client's account and against the session
// itself: what its transactions were charged, and its actions, is what it says is used, to the last micro-dollar.
func checkTransactions(f transactionsFact) []violation {
	if f.err != nil {
		return []violation{found(ruleUnchecked, f.session, "listing its transactions: %v", f.err)}
	}
	var out []violation
	add := func(r rule, format string, args ...any) { out = append(out, found(r, f.session, format, args...)) }
	if odd := f.firstGap(); odd > 0 {
		add(ruleSequence, "of %d transactions, no. %d does not have this number", f.listed, odd)
	}
	if f.before.begun == f.possible.begun && f.before.numbers != f.listed*(f.listed+1)/2 {
		add(ruleSequence, "the numbers told to %d begins sum to %d", f.listed, f.before.numbers)
	}
	if f.unsettled > 0 {
		add(ruleEnd, "%d transactions are neither committed nor rolled back, or hold value", f.unsettled)
	}
	b, p := f.before, f.possible
	if f.listed < b.begun || f.committed < b.committed-p.undone || f.spent < b.spent-p.returned || f.over < b.over-p.overReturned {
		add(ruleLost, "%d transactions, %d committed for %s USD and %s over; acknowledged: %d, %d, %s, %s",
			f.listed, f.committed, f.spent, f.over, b.begun, b.committed-p.undone, b.spent-p.returned, b.over-p.overReturned)
	}
	if f.listed > p.begun || f.committed > p.committed-b.undone || f.spent > p.spent-b.returned || f.over > p.over-b.overReturned {
		add(ruleSurplus, "%d transactions, %d committed for %s USD and %s over; acknowledged or in doubt: %d, %d, %s, %s",
			f.listed, f.committed, f.spent, f.over, p.begun, p.committed-b.undone, p.spent-b.returned, p.over-b.overReturned)
	}
	if s, err := readSession(f.after); err == nil {
		if byActions := s.ValueUsed - f.spent; byActions < b.value || byActions > p.value || s.Overage != f.over {
			add(ruleSum, "%s USD used and %s over, of which its transactions %s and %s; its actions acknowledged %s, or %s with those in doubt",
				s.ValueUsed, s.Overage, f.spent, f.over, b.value, p.value)
		}
	}
	return out
}
