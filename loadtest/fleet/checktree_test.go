package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"remit/money"
)

// nodeJSON returns a session of a tree as the service shows it, with so much used, delegated and below.
func nodeJSON(id, status string, actions int64, used, over string, delegated string, children string) reply {
	return problemReply(200, fmt.Sprintf(`"id":%q,"status":%q,"max_actions":20,"action_count":%d,"max_value_usd":8,"value_used_usd":%s,`+
		`"value_held_usd":0,"value_overage_usd":%s,"actions_delegated":0,"value_delegated_usd":%s,"children":[%s]`, id, status, actions, used, over, delegated, children))
}

func TestCheckActionInATree(t *testing.T) {
	t.Parallel()
	const usd = money.USD
	for _, test := range []struct {
		name   string
		reply  reply
		ending bool
		want   []rule
	}{
		{"in order", done(), false, nil},
		{"with what children used", done("action_count", "9", "remaining_actions", "11"), false, nil},
		{"less remains, for it is delegated", done("remaining_actions", "1"), false, nil},
		{"more remains than there is", done("remaining_actions", "19"), false, []rule{ruleRemainder}},
		{"limits lowered", done("max_actions", "19", "remaining_actions", "9"), false, nil},
		{"limits beyond the top-ups", done("max_actions", "21"), false, []rule{ruleLimits}},
		{"an action forgotten", done("action_count", "2"), false, []rule{ruleStale}},
		{"more than all requested", done("action_count", "13", "remaining_actions", "7"), false, []rule{ruleInvented}},
		{"refused for value", overLimit(limitValue, "remaining_value_usd", "0.5"), false, nil},
		{"refused although it fits", overLimit(limitActions, "remaining_actions", "2"), false, []rule{ruleRefusal}},
		{"not active, when it was to end", problemReply(403, `"code":"session_not_active"`), true, nil},
		{"not active, when it was not", problemReply(403, `"code":"session_not_active"`), false, []rule{ruleStatus}},
	} {
		before, possible := effect{charge: charge{2, usd}}, effect{charge{12, 7 * usd}, flow{held: 7 * usd}}
		fact := requestFact(effect{charge: charge{1, usd}}, test.reply, before, possible)
		fact.inTree, fact.ending = true, test.ending
		wantRules(t, test.name, checkAction(fact), test.want)
	}
}

func TestCheckTreeRead(t *testing.T) {
	t.Parallel()
	child := func(max string) string {
		return fmt.Sprintf(`{"id":"c","status":"active","max_actions":0,"action_count":0,"max_value_usd":%s,"value_used_usd":0,"value_held_usd":0,"value_overage_usd":0}`, max)
	}
	for name, test := range map[string]struct {
		reply reply
		want  []rule
	}{
		"in order":                   {nodeJSON("r", statusActive, 6, "3", "0", "5", child("5")), nil},
		"a larger part":              {nodeJSON("r", statusActive, 6, "3", "0", "5", child("4")), nil},
		"too much delegated":         {nodeJSON("r", statusActive, 6, "3", "0", "5.000001", child("5")), []rule{ruleExceeded}},
		"a child beyond its part":    {nodeJSON("r", statusActive, 6, "3", "0", "5", child("5.000001")), []rule{ruleExceeded}},
		"children beyond their part": {nodeJSON("r", statusActive, 6, "3", "0", "5", child("3")+","+child("3")), []rule{ruleExceeded}},
		"an ended child":             {nodeJSON("r", statusActive, 6, "3", "0", "0", strings.Replace(child("5"), "active", "completed", 1)), nil},
		"another's":                  {nodeJSON("x", statusActive, 6, "3", "0", "5", ""), []rule{ruleUnreadable}},
		"refused":                    {problemReply(404, `"code":"not_found"`), []rule{ruleStatus}},
	} {
		wantRules(t, name, checkTreeAtRest("r", test.reply), test.want)
	}
}

func TestCheckPlanted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply reply
		want  []rule
	}{
		"created":             {reply{status: 201}, nil},
		"beyond the budget":   {problemReply(403, `"code":"budget_exhausted","remaining_usd":1.999999`), nil},
		"within the budget":   {problemReply(403, `"code":"budget_exhausted","remaining_usd":2`), []rule{ruleRefusal}},
		"without a remainder": {problemReply(403, `"code":"budget_exhausted"`), []rule{ruleUnreadable}},
		"refused otherwise":   {problemReply(403, `"code":"quota_exceeded"`), []rule{ruleStatus}},
		"no answer":           {reply{err: errors.New("gone")}, []rule{ruleUnchecked}},
	} {
		wantRules(t, name, checkPlanted("a", 2*money.USD, test.reply), test.want)
	}
}

func TestCheckGrove(t *testing.T) {
	t.Parallel()
	const usd = money.USD
	budget := func(reserved, used string) reply {
		return problemReply(200, fmt.Sprintf(`"max_value_usd":9,"value_reserved_usd":%s,"value_used_usd":%s`, reserved, used))
	}
	closed := func(id string, actions int64, used string) reply {
		return nodeJSON(id, statusCompleted, actions, used, "0", "0", "")
	}
	for _, test := range []struct {
		name   string
		change func(nodes []closedNode, budget *reply)
		want   []rule
	}{
		{"in order", func([]closedNode, *reply) {}, nil},
		{"a child not counted", func(n []closedNode, _ *reply) { n[0].read = closed("r", 4, "4") }, []rule{ruleLost, ruleBudget}},
		{"a micro-dollar too little", func(n []closedNode, _ *reply) { n[1].read = closed("c", 3, "2.999999") }, []rule{ruleSurplus, ruleLost}},
		{"an action too many", func(n []closedNode, _ *reply) { n[2].read = closed("g", 2, "1") }, []rule{ruleLost, ruleSurplus}},
		{"of unknown outcome", func(n []closedNode, _ *reply) { n[1].possible.value += usd }, nil},
		{"a part that stays", func(n []closedNode, _ *reply) { n[0].read = nodeJSON("r", statusCompleted, 5, "6", "0", "1", "") }, []rule{rulePart}},
		{"still active", func(n []closedNode, _ *reply) { n[2].read = nodeJSON("g", statusActive, 1, "1", "0", "0", "") }, []rule{ruleEnd}},
		{"not read", func(n []closedNode, _ *reply) { n[2].read = reply{err: errors.New("gone")} }, []rule{ruleUnchecked, ruleSurplus}},
		{"a reservation that stays", func(_ []closedNode, b *reply) { *b = budget("1", "6") }, []rule{rulePart}},
		{"the budget counts less", func(_ []closedNode, b *reply) { *b = budget("0", "5.999999") }, []rule{ruleBudget}},
		{"the budget counts more", func(_ []closedNode, b *reply) { *b = budget("0", "6.000001") }, []rule{ruleBudget}},
		{"the budget was not read", func(_ []closedNode, b *reply) { *b = reply{err: errors.New("gone")} }, []rule{ruleUnchecked}},
	} {
		nodes, of := []closedNode{
			{"r", "", uncertain(charge{2, 3 * usd}, charge{}), closed("r", 5, "6")},
			{"c", "r", uncertain(charge{2, 2 * usd}, charge{}), closed("c", 3, "3")},
			{"g", "c", uncertain(charge{1, usd}, charge{}), closed("g", 1, "1")},
		}, budget("0", "6")
		test.change(nodes, &of)
		wantRules(t, test.name, checkGrove(nodes, of), test.want)
	}
}
