package faults

import (
	"slices"
	"testing"

	"remit/money"
)

// known is a usage of so much, exactly.
func known(actions int64, used, overage money.MicroUSD) ownUsage {
	return ownUsage{bounds{actions, actions}, bounds{int64(used), int64(used)}, bounds{int64(overage), int64(overage)}}
}

// closedTree is a root with a child and a grandchild, which spent 10, 20 and 30 in 1, 2 and 3 actions, and 5 too much below.
func closedTree() ([]treeNode, Budget) {
	node := func(id, parent string, own ownUsage, actions int64, used, over money.MicroUSD) treeNode {
		return treeNode{id: id, parent: parent, own: own, stored: TreeSession{ID: id, Parent: parent, Overage: over,
			Session: Session{Actions: actions, MaxActions: 10, Used: used, MaxValue: 100, Status: "completed"}}}
	}
	return []treeNode{
		node("root", "", known(1, 10, 0), 6, 60, 5),
		node("child", "root", known(2, 20, 0), 5, 50, 5),
		node("grandchild", "child", known(3, 30, 5), 3, 30, 5),
	}, Budget{Max: 200, Used: 60}
}

func TestCheckTreesFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(nodes []treeNode, b *Budget)
		want   []Rule
	}{
		{"in order", func([]treeNode, *Budget) {}, nil},
		{"a charge of unknown outcome that happened", func(n []treeNode, _ *Budget) { n[2].own.used.least -= 10 }, nil},
		{"a charge of unknown outcome that did not", func(n []treeNode, _ *Budget) { n[2].own.used.most += 10 }, nil},
		{"a charge of the grandchild lost everywhere", func(n []treeNode, b *Budget) {
			n[0].stored.Used, n[1].stored.Used, n[2].stored.Used, b.Used = 59, 49, 29, 59
		}, []Rule{RuleLost}},
		{"the child's usage not taken", func(n []treeNode, b *Budget) { n[0].stored.Used, b.Used = 10, 10 }, []Rule{RuleLost}},
		{"the grandchild's usage taken twice", func(n []treeNode, b *Budget) {
			n[0].stored.Used, n[1].stored.Used, b.Used = 90, 80, 90
		}, []Rule{RuleSurplus}},
		{"an action taken twice", func(n []treeNode, _ *Budget) { n[1].stored.Actions, n[0].stored.Actions = 6, 7 }, []Rule{RuleSurplus}},
		{"the overage not taken", func(n []treeNode, _ *Budget) { n[0].stored.Overage = 0 }, []Rule{RuleLost}},
		{"a part that stays", func(n []treeNode, _ *Budget) { n[0].stored.DelegatedValue = 1 }, []Rule{RulePart}},
		{"actions that stay", func(n []treeNode, _ *Budget) { n[1].stored.DelegatedActions = 1 }, []Rule{RulePart}},
		{"a hold that stays", func(n []treeNode, _ *Budget) { n[2].stored.Held = 1 }, []Rule{RulePart}},
		{"a session that lives", func(n []treeNode, _ *Budget) { n[2].stored.Status = "active" }, []Rule{RulePart}},
		{"a session that is gone", func(n []treeNode, _ *Budget) { n[2].missing = true }, []Rule{RuleLost}},
		{"a limit exceeded", func(n []treeNode, _ *Budget) { n[0].stored.MaxValue = 59 }, []Rule{RuleLimit}},
		{"a limit of actions exceeded", func(n []treeNode, _ *Budget) { n[0].stored.MaxActions = 5 }, []Rule{RuleLimit}},
		{"a reservation that stays", func(_ []treeNode, b *Budget) { b.Reserved = 1 }, []Rule{RulePart}},
		{"the budget exceeded", func(_ []treeNode, b *Budget) { b.Max = 59 }, []Rule{RuleLimit}},
		{"a root not taken", func(_ []treeNode, b *Budget) { b.Used = 0 }, []Rule{RuleLost}},
		{"a root taken twice", func(_ []treeNode, b *Budget) { b.Used = 120 }, []Rule{RuleSurplus}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			nodes, budget := closedTree()
			test.change(nodes, &budget)
			var got []Rule
			for _, v := range checkTrees(nodes, budget) {
				got = append(got, v.Rule)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("broken: %q, want %q", got, test.want)
			}
		})
	}
}

func TestCheckTreeFindsALiveTreeBeyondALimit(t *testing.T) {
	t.Parallel()
	tree := func(delegated, childUsed money.MicroUSD) TreeSession {
		child := TreeSession{ID: "child", Session: Session{MaxActions: 5, Used: childUsed, MaxValue: 50}}
		return TreeSession{ID: "root", DelegatedValue: delegated, DelegatedActions: 5, Children: []TreeSession{child},
			Session: Session{Actions: 5, MaxActions: 10, Used: 40, Held: 10, MaxValue: 100}}
	}
	for name, test := range map[string]struct {
		tree TreeSession
		want int
	}{
		"within":                     {tree(50, 50), 0},
		"delegated beyond the limit": {tree(51, 50), 1},
		"a child beyond its limit":   {tree(50, 51), 1},
		"both":                       {tree(51, 51), 2},
	} {
		if got := checkTree(test.tree); len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
