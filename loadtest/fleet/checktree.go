package fleet

import (
	"encoding/json"
	"errors"
	"net/http"

	"remit/money"
)

// checkPart checks the answer to a child's creation or to a top-up. It may be refused for want of room above.
func checkPart(f fact) []violation {
	p := readProblem(f.reply)
	switch f.reply.outcome() {
	case acknowledged:
		return nil
	case unknown:
		return checkUnanswered(f.session, f.reply)
	}
	switch {
	case f.ending && p.Code == codeNotActive:
		return nil
	case p.Code == codeBudgetExhausted:
		return checkPlanted(f.session, f.requested.value, f.reply)
	case f.reply.status != http.StatusForbidden || p.Code != codeLimitReached:
		return []violation{found(ruleStatus, f.session, "a part of it: refused with %s, when its end was sent: %t", f.reply, f.ending)}
	case p.complete() != nil:
		return nil // it names a limit without an amount
	}
	return checkRefusal(f, p)
}

// checkPlanted checks the answer to a root's creation. A budget refuses it only if less remains.
func checkPlanted(subject string, value money.MicroUSD, r reply) []violation {
	switch r.outcome() {
	case acknowledged:
		return nil
	case unknown:
		return []violation{found(ruleUnchecked, subject, "creating a root session: %s", r)} // if it exists, the budget counts it
	}
	p := struct {
		Remaining money.MicroUSD `json:"remaining_usd"`
	}{absent}
	err := json.Unmarshal(r.body, &p)
	switch {
	case readProblem(r).Code != codeBudgetExhausted:
		return []violation{found(ruleStatus, subject, "under the budget: refused with %s", r)}
	case err != nil || p.Remaining < 0:
		return []violation{found(ruleUnreadable, subject, "remaining_usd is missing or negative: %v", err)}
	case value <= p.Remaining:
		return []violation{found(ruleRefusal, subject, "%s USD of the budget, of which %s remain", value, p.Remaining)}
	}
	return nil
}

// treeAnswer is a session in the answer that has its tree.
type treeAnswer struct {
	sessionAnswer
	DelegatedActions int64          `json:"actions_delegated"`
	DelegatedValue   money.MicroUSD `json:"value_delegated_usd"`
	Children         []treeAnswer   `json:"children"`
}

func readTree(r reply) (s treeAnswer, err error) {
	if _, err := readSession(r); err != nil {
		return treeAnswer{}, err
	}
	err = json.Unmarshal(r.body, &s)
	return s, err
}

// checkTreeRead checks the limits of all sessions of a tree. Each is read by itself, so a parent and a child need not fit together.
func checkTreeRead(root string, r reply) []violation {
	if r.outcome() != acknowledged {
		return checkAccepted(root, r)
	}
	s, err := readTree(r)
	if err != nil || s.ID != root {
		return []violation{found(ruleUnreadable, root, "its tree is of %q: %v", s.ID, err)}
	}
	return s.check()
}

// checkTreeAtRest checks a tree without changes under way: also that what sessions have delegated covers the limits of their children.
func checkTreeAtRest(root string, r reply) []violation {
	out := checkTreeRead(root, r)
	if s, err := readTree(r); err == nil && r.outcome() == acknowledged {
		out = append(out, s.checkCovered()...)
	}
	return out
}

func (s treeAnswer) checkCovered() (out []violation) {
	var may limits
	for _, child := range s.Children {
		if child.Status == statusActive { // the parts of others may have come back
			may.actions, may.value = may.actions+child.MaxActions, may.value+child.MaxValue
		}
		out = append(out, child.checkCovered()...)
	}
	if may.actions > s.DelegatedActions || may.value > s.DelegatedValue {
		out = append(out, found(ruleExceeded, s.ID, "its children may use %d actions and %s USD; delegated are %d and %s", may.actions, may.value,
			s.DelegatedActions, s.DelegatedValue))
	}
	return out
}

func (s treeAnswer) check() (out []violation) {
	if s.ActionCount+s.DelegatedActions > s.MaxActions || s.ValueUsed+s.ValueHeld+s.DelegatedValue > s.MaxValue {
		out = append(out, found(ruleExceeded, s.ID, "%d actions and %d delegated of %d; %s USD used, %s held and %s delegated of %s", s.ActionCount,
			s.DelegatedActions, s.MaxActions, s.ValueUsed, s.ValueHeld, s.DelegatedValue, s.MaxValue))
	}
	for _, child := range s.Children {
		out = append(out, child.check()...)
	}
	return out
}

type budgetAnswer struct {
	Max      money.MicroUSD `json:"max_value_usd"`
	Reserved money.MicroUSD `json:"value_reserved_usd"`
	Used     money.MicroUSD `json:"value_used_usd"`
}

func readBudget(r reply) (budgetAnswer, error) {
	b := budgetAnswer{absent, absent, absent}
	if err := json.Unmarshal(r.body, &b); err != nil {
		return b, err
	}
	if b.Max < 0 || b.Reserved < 0 || b.Used < 0 {
		return b, errors.New("an amount is missing or negative")
	}
	return b, nil
}

// checkBudgetRead checks the limit of the budget, which was set to the least before it was read, and to the most meanwhile.
func checkBudgetRead(least, most money.MicroUSD, r reply) []violation {
	if r.outcome() != acknowledged {
		return checkAccepted(budgetSubject, r)
	}
	b, err := readBudget(r)
	switch {
	case err != nil:
		return []violation{found(ruleUnreadable, budgetSubject, "%v", err)}
	case b.Max < least || b.Max > most:
		return []violation{found(ruleLimits, budgetSubject, "it is %s USD, set to %s to %s", b.Max, least, most)}
	case b.Used+b.Reserved > b.Max:
		return []violation{found(ruleExceeded, budgetSubject, "%s USD used and %s reserved of %s", b.Used, b.Reserved, b.Max)}
	}
	return nil
}

const budgetSubject = "the budget"

// checkSpent checks the limits of all sessions of a tree against what was acknowledged in and below each, at one moment between two
// looks at all ledgers: what was used before the first is used, and what was held then is held, unless it was to be settled by the
// second.
func (t *tree) checkSpent() []violation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.nodes) == 0 {
		return nil
	}
	acknowledged := map[*session]effect{}
	for _, n := range t.nodes {
		acknowledged[n] = n.ledger.sums().acknowledged.effect
	}
	var out []violation
	t.nodes[0].sumSpent(acknowledged, &out)
	return out
}

// sumSpent returns what is surely used and held in and below the session.
func (n *session) sumSpent(acknowledged map[*session]effect, out *[]violation) state {
	before := acknowledged[n]
	sum := state{count: before.count, used: before.value + before.spent}
	if !n.ending {
		sum.held = max(before.held-n.ledger.possible().freed, 0)
	}
	for _, child := range n.children {
		below := child.sumSpent(acknowledged, out)
		sum.count, sum.used, sum.held = sum.count+below.count, sum.used+below.used, sum.held+below.held
	}
	if sum.count > n.limits.actions || sum.used+sum.held > n.limits.value {
		*out = append(*out, found(ruleExceeded, n.sdk.ID(), "in and below it %d actions, %s USD are used and %s held, of at most %d and %s", sum.count,
			sum.used, sum.held, n.limits.actions, n.limits.value))
	}
	return sum
}
