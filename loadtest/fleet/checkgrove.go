package fleet

import "remit/money"

// closedNode is what is known of a session of a tree whose root has ended.
type closedNode struct {
	session, parent string // no parent: a root
	window                 // from its own ledger
	read            reply
}

// checkGrove checks that each session has used what was charged to it and what its children have used, to the micro-dollar; that the
// budget has used what the roots have; and that everything that was set aside has come back.
func checkGrove(nodes []closedNode, budget reply) []violation {
	below, stored := map[string]state{}, map[string]treeAnswer{}
	var out []violation
	for _, n := range nodes {
		s, err := readTree(n.read)
		if n.read.outcome() != acknowledged || err != nil {
			out = append(out, found(ruleUnchecked, n.session, "reading it after its end: %s, %v", n.read, err))
			continue
		}
		stored[n.session] = s
		sum := below[n.parent]
		sum.count, sum.used, sum.over = sum.count+s.ActionCount, sum.used+s.ValueUsed, sum.over+s.Overage
		below[n.parent] = sum
	}
	for _, n := range nodes {
		if s, read := stored[n.session]; read {
			out = append(out, n.check(s, below[n.session])...)
		}
	}
	return append(out, checkClosedBudget(budget, below[""].used)...)
}

// check compares a session with its own ledger and with its children.
func (n closedNode) check(s treeAnswer, children state) []violation {
	out := s.check()
	if s.Status != statusCompleted {
		out = append(out, found(ruleEnd, n.session, "reads %q, not %q", s.Status, statusCompleted))
	}
	if s.ValueHeld != 0 || s.DelegatedActions != 0 || s.DelegatedValue != 0 {
		out = append(out, found(rulePart, n.session, "%s USD held, %d actions and %s USD delegated", s.ValueHeld, s.DelegatedActions, s.DelegatedValue))
	}
	own, least, most := state{count: s.ActionCount - children.count, used: s.ValueUsed - children.used, over: s.Overage - children.over}, n.least(), n.most()
	least.held, most.held = 0, 0
	return append(out, checkBetween(n.session+" without its children", own, least, most)...)
}

func checkClosedBudget(r reply, roots money.MicroUSD) []violation {
	b, err := readBudget(r)
	if r.outcome() != acknowledged || err != nil {
		return []violation{found(ruleUnchecked, budgetSubject, "reading it at the end: %s, %v", r, err)}
	}
	var out []violation
	if b.Reserved != 0 {
		out = append(out, found(rulePart, budgetSubject, "%s USD are reserved, and all sessions have ended", b.Reserved))
	}
	if b.Used != roots {
		out = append(out, found(ruleBudget, budgetSubject, "%s USD used, the root sessions have used %s", b.Used, roots))
	}
	return append(out, checkBudgetRead(b.Max, b.Max, r)...)
}
