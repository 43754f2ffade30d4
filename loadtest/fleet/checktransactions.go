package fleet

import (
	"net/http"
	"slices"

	"remit/client"
	"remit/money"
)

// checkBegin checks the answer to a begin. Its sequence number counts the begins before it, and begins in flight at the same
// time may come first.
func checkBegin(f fact) []violation {
	switch f.reply.outcome() {
	case refused:
		return checkRefused(f)
	case unknown:
		return checkUnanswered(f.session, f.reply)
	}
	t, err := readTransaction(f.reply)
	if err != nil || f.reply.status != http.StatusCreated {
		return []violation{found(ruleUnreadable, f.session, "begin answered %d: %v", f.reply.status, err)}
	}
	out := f.checkDone()
	if t.Session != f.session || t.Status != statusPending || t.ValueHeld != f.requested.held || t.Overage != 0 {
		out = append(out, found(ruleStep, f.session, "begin answered session %s, %s, %s held of %s, %s over",
			t.Session, t.Status, t.ValueHeld, f.requested.held, t.Overage))
	}
	if t.Sequence <= f.before.begun || t.Sequence > f.possible.begun {
		out = append(out, found(ruleSequence, f.session, "begin is number %d, after %d acknowledged and of %d sent",
			t.Sequence, f.before.begun, f.possible.begun))
	}
	return out
}

// checkCommit checks the answer to a commit. The cost is charged up to the session's limit, and the rest recorded as
// overage. The held value always fits, and the rest unless the session is full. In a tree, what it has delegated fills it too.
func checkCommit(f fact) []violation {
	t, out := checkOutcome(f, statusCommitted)
	if len(out) > 0 || f.reply.outcome() != acknowledged {
		return out
	}
	if cost, hold := f.requested.spent, f.requested.freed; t.Value+t.Overage != cost || t.Value < min(cost, hold) {
		out = append(out, found(ruleStep, f.transaction, "commit of %s USD, of which %s were held: %s charged, %s over",
			cost, hold, t.Value, t.Overage))
	}
	if most := f.most(); t.Overage > 0 && most.used+most.held < f.limits.value && !f.inTree {
		out = append(out, found(ruleRefusal, f.transaction, "%s USD over, with at most %s of %s USD used and held",
			t.Overage, most.used+most.held, f.limits.value))
	}
	return out
}

// checkRollback checks the answer to a rollback.
func checkRollback(f fact) []violation {
	_, out := checkOutcome(f, statusRolledBack)
	return out
}

// checkOutcome checks what commits and rollbacks have in common. The service must not refuse them, because the fleet ends
// each transaction once and in time, unless the session's end came first.
func checkOutcome(f fact, status string) (transactionAnswer, []violation) {
	switch f.reply.outcome() {
	case refused:
		if code := readProblem(f.reply).Code; f.ending && (code == codeNotPending || code == codeNotActive) {
			return transactionAnswer{}, nil
		}
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

// transactionList sums up the transactions that the service lists for an ended session.
type transactionList struct {
	listed      int64
	numbers     []int64 // in the order of the list
	unfinished  int64   // pending, or still holding value
	committed   int64
	spent, over money.MicroUSD // by committed transactions
}

// enter adds a transaction to the sums.
func (r *transactionList) enter(t client.TransactionInfo) {
	r.listed++
	r.numbers = append(r.numbers, t.SequenceNumber)
	switch {
	case t.ValueHeld != 0, t.Status != statusCommitted && t.Status != statusRolledBack:
		r.unfinished++
	case t.Status == statusCommitted:
		r.committed++
		r.spent += t.Value
		r.over += t.Overage
	}
}

// firstGap returns the first position, from 1, at which the sorted sequence numbers are not 1, 2, 3 and so on; 0 if there is
// none. The list itself is in the order of ids, which are assigned before the sequence numbers.
func (r *transactionList) firstGap() int {
	for i, n := range slices.Sorted(slices.Values(r.numbers)) {
		if n != int64(i+1) {
			return i + 1
		}
	}
	return 0
}

// transactionsFact is what is known of the transactions of an ended session.
type transactionsFact struct {
	session string
	window  // from the ledger
	transactionList
	after reply // the session after its end
	err   error // of listing them
}

// checkTransactions compares the transactions of an ended session with the client's ledger and with the session itself: its
// used value is exactly the sum of what its transactions and actions were charged.
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
		add(ruleSequence, "the sequence numbers of %d begins sum to %d", f.listed, f.before.numbers)
	}
	if f.unfinished > 0 {
		add(ruleEnd, "%d transactions are neither committed nor rolled back, or hold value", f.unfinished)
	}
	b, p := f.before, f.possible
	if f.listed < b.begun || f.committed < b.committed-p.undone || f.spent < b.spent-p.returned || f.over < b.over-p.overReturned {
		add(ruleLost, "%d transactions, %d committed for %s USD and %s over; acknowledged: %d, %d, %s, %s",
			f.listed, f.committed, f.spent, f.over, b.begun, b.committed-p.undone, b.spent-p.returned, b.over-p.overReturned)
	}
	if f.listed > p.begun || f.committed > p.committed-b.undone || f.spent > p.spent-b.returned || f.over > p.over-b.overReturned {
		add(ruleSurplus, "%d transactions, %d committed for %s USD and %s over; acknowledged or of unknown outcome: %d, %d, %s, %s",
			f.listed, f.committed, f.spent, f.over, p.begun, p.committed-b.undone, p.spent-b.returned, p.over-b.overReturned)
	}
	if s, err := readSession(f.after); err == nil {
		if byActions := s.ValueUsed - f.spent; byActions < b.value || byActions > p.value || s.Overage != f.over {
			add(ruleSum, "%s USD used and %s over, of which its transactions %s and %s; its actions acknowledged %s, or %s with those of unknown outcome",
				s.ValueUsed, s.Overage, f.spent, f.over, b.value, p.value)
		}
	}
	return out
}
