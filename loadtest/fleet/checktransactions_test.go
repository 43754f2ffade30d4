package fleet

import (
	"errors"
	"testing"

	"remit/client"
	"remit/money"
)

// step returns an answer with a transaction, changed by the arguments as usageJSON's members are.
func step(status int, changed ...string) reply {
	return problemReply(status, membersJSON(map[string]string{
		"id": `"t"`, "session_id": `"s"`, "status": `"pending"`, "sequence_number": "6",
		"value_usd": "2", "value_held_usd": "2", "overage_usd": "0",
	}, changed))
}

func TestCheckBegin(t *testing.T) {
	const usd = money.USD
	for _, test := range []struct {
		name  string
		reply reply
		want  []rule
	}{
		{"in order", step(201), nil},
		{"unanswered", reply{status: 302}, []rule{ruleStatus}},
		{"200", step(200), []rule{ruleUnreadable}},
		{"number missing", step(201, "sequence_number", ""), []rule{ruleUnreadable}},
		{"another session", step(201, "session_id", `"x"`), []rule{ruleStep}},
		{"committed at once", step(201, "status", `"committed"`), []rule{ruleStep}},
		{"holds less", step(201, "value_held_usd", "1.999999"), []rule{ruleStep}},
		{"a number given before", step(201, "sequence_number", "5"), []rule{ruleSequence}},
		{"a number beyond all begins", step(201, "sequence_number", "9"), []rule{ruleSequence}},
		{"the last number possible", step(201, "sequence_number", "8"), nil},
		{"refused for value", overLimit(limitValue, "value_used_usd", "5.1", "remaining_value_usd", "1.9"), nil},
		{"refused although it fits", overLimit(limitValue), []rule{ruleRefusal}},
		{"not active", problemReply(403, `"code":"session_not_active"`), []rule{ruleStatus}},
	} {
		requested := effect{charge{count: 1}, flow{begun: 1, held: 2 * usd}}
		before, possible := effect{flow: flow{begun: 5}}, effect{charge{100, 100 * usd}, flow{begun: 8, held: 100 * usd}}
		wantRules(t, test.name, checkBegin(requestFact(requested, test.reply, before, possible)), test.want)
	}
}

func TestCheckCommit(t *testing.T) {
	const usd = money.USD
	settled := func(value, over string, changed ...string) reply {
		return step(200, append([]string{"status", `"committed"`, "value_held_usd", "0", "value_usd", value, "overage_usd", over}, changed...)...)
	}
	possible := effect{charge{5, 4 * usd}, flow{held: 4 * usd}}
	for _, test := range []struct {
		name      string
		requested money.MicroUSD
		reply     reply
		want      []rule
	}{
		{"what is held", 2 * usd, settled("2", "0"), nil},
		{"less", 1 * usd, settled("1", "0"), nil},
		{"more", 5 * usd, settled("5", "0"), nil},
		{"partly over", 5 * usd, settled("3.5", "1.5"), nil},
		{"no answer", 2 * usd, reply{err: errors.New("gone")}, nil},
		{"charged too little", 2 * usd, settled("1.999999", "0"), []rule{ruleStep}},
		{"charged too much", 2 * usd, settled("2.000001", "0"), []rule{ruleStep}},
		{"the hold over", 2 * usd, settled("1.5", "0.5"), []rule{ruleStep}},
		{"parts do not add up", 5 * usd, settled("3", "1"), []rule{ruleStep}},
		{"another transaction", 2 * usd, settled("2", "0", "id", `"x"`), []rule{ruleStep}},
		{"still pending", 2 * usd, settled("2", "0", "status", `"pending"`), []rule{ruleStep}},
		{"still holding", 2 * usd, settled("2", "0", "value_held_usd", "2"), []rule{ruleStep}},
		{"overage missing", 2 * usd, settled("2", ""), []rule{ruleUnreadable}},
		{"refused", 2 * usd, problemReply(409, `"code":"transaction_not_pending"`), []rule{ruleStatus}},
	} {
		requested := effect{flow: flow{freed: 2 * usd, spent: test.requested}}
		wantRules(t, test.name, checkCommit(requestFact(requested, test.reply, effect{}, possible)), test.want)
	}
	roomy := requestFact(effect{flow: flow{freed: 2 * usd, spent: 5 * usd}}, settled("3.5", "1.5"), effect{}, possible)
	roomy.limits.value = 9 * usd
	wantRules(t, "over although it fitted", checkCommit(roomy), []rule{ruleRefusal})
}

func TestCheckRollback(t *testing.T) {
	for name, test := range map[string]struct {
		reply reply
		want  []rule
	}{
		"in order":      {step(200, "status", `"rolled_back"`, "value_held_usd", "0"), nil},
		"still holding": {step(200, "status", `"rolled_back"`), []rule{ruleStep}},
		"committed":     {step(200, "status", `"committed"`, "value_held_usd", "0"), []rule{ruleStep}},
		"refused":       {problemReply(403, `"code":"insufficient_scope"`), []rule{ruleStatus}},
	} {
		wantRules(t, name, checkRollback(fact{transaction: "t", reply: test.reply}), test.want)
	}
}

func listed(number int64, status string, value, over money.MicroUSD) client.TransactionInfo {
	info := client.TransactionInfo{SequenceNumber: number, Status: status}
	info.Value, info.Overage = value, over
	return info
}

// endedSession is the fact of a session, and its transactions before they are entered in it.
type endedSession struct {
	transactionsFact
	list []client.TransactionInfo
}

// ended is a session of 4 transactions: 2 committed for 3 USD and 1 over, one rolled back, one undone; its actions used 5 USD.
func ended() endedSession {
	const usd = money.USD
	totals := effect{charge{9, 5 * usd}, flow{
		begun: 4, committed: 3, undone: 1, numbers: 10, spent: 5 * usd, returned: 2 * usd, over: usd,
	}}
	fact := transactionsFact{
		session: "s", window: window{totals, totals},
		after: problemReply(200, `"max_actions":20,"action_count":9,"max_value_usd":8,"value_used_usd":8,"value_held_usd":0,"value_overage_usd":1`),
	}
	return endedSession{fact, []client.TransactionInfo{
		listed(4, statusCommitted, 2*usd, usd), listed(2, statusRolledBack, 2*usd, 0),
		listed(3, statusCommitted, usd, 0), listed(1, statusRolledBack, 3*usd, 0),
	}}
}

func TestCheckTransactions(t *testing.T) {
	const usd = money.USD
	for _, test := range []struct {
		name   string
		change func(*endedSession)
		want   []rule
	}{
		{"in order", func(*endedSession) {}, nil},
		{"not listed", func(s *endedSession) { s.err = errors.New("gone") }, []rule{ruleUnchecked}},
		{"a gap", func(s *endedSession) { s.list[0].SequenceNumber = 5 }, []rule{ruleSequence}},
		{"a number twice", func(s *endedSession) { s.list[0].SequenceNumber = 3 }, []rule{ruleSequence}},
		{"a number told twice", func(s *endedSession) { s.before.numbers, s.possible.numbers = 9, 9 }, []rule{ruleSequence}},
		{"numbers of unknown outcome", func(s *endedSession) { s.before.begun, s.before.numbers = 3, 6 }, nil},
		{"one too few", func(s *endedSession) { s.before.begun, s.possible.begun, s.before.numbers = 5, 5, 10 }, []rule{ruleLost}},
		{"one too many", func(s *endedSession) { s.before.begun, s.possible.begun, s.before.numbers = 3, 3, 10 }, []rule{ruleSurplus}},
		{"still pending", func(s *endedSession) { s.list[1].Status = statusPending }, []rule{ruleEnd}},
		{"holding", func(s *endedSession) { s.list[1].ValueHeld = 1 }, []rule{ruleEnd}},
		{"a commit lost", func(s *endedSession) { s.list[2].Status = statusRolledBack }, []rule{ruleLost, ruleSum}},
		{"an undone one committed", func(s *endedSession) { s.list[1].Status = statusCommitted }, []rule{ruleSurplus, ruleSum}},
		{"a commit worth less", func(s *endedSession) { s.list[2].Value-- }, []rule{ruleLost, ruleSum}},
		{"overage lost", func(s *endedSession) { s.list[0].Overage-- }, []rule{ruleLost, ruleSum}},
		{"the session says otherwise", func(s *endedSession) { s.before.value, s.possible.value = 4*usd, 4*usd }, []rule{ruleSum}},
		{"an action of unknown outcome", func(s *endedSession) { s.before.value = 4 * usd }, nil},
		{"a commit of unknown outcome that happened", func(s *endedSession) { s.before.committed, s.before.spent = 2, 4*usd }, nil},
		{"a commit of unknown outcome that did not happen", func(s *endedSession) { s.possible.committed, s.possible.spent = 4, 7*usd }, nil},
	} {
		s := ended()
		test.change(&s)
		for _, each := range s.list {
			s.enter(each)
		}
		wantRules(t, test.name, checkTransactions(s.transactionsFact), test.want)
	}
}
