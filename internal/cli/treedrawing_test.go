package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/test/suite"
)

func part(id string, used, most money.MicroUSD, children ...client.SessionTree) client.SessionTree {
	info := client.SessionInfo{ID: id + "-0000", Status: "active", MaxActions: 20, ActionCount: 1, ValueUsed: used, MaxValue: most}
	return client.SessionTree{SessionInfo: info, Children: children}
}

func planner() client.SessionTree {
	paused := part("01a203d2-92f9", 0, money.USD/10)
	paused.ActionCount, paused.SuspendedAt = 17, time.Unix(1, 0)
	tree := part("01a203d2-90b9", money.USD/10, 2*money.USD,
		part("01a203d2-92f7", 15*money.USD/100, 4*money.USD/10, paused), part("01a203d2-92fb", 36*money.USD/100, 4*money.USD/10))
	tree.ValueDelegated, tree.ActionsDelegated = 12*money.USD/10, 9
	return tree
}

func TestThePageShowsATreeAsItIsDrawn(t *testing.T) {
	t.Parallel()
	page := suite.Must(os.ReadFile("../../docs/cli.md"))(t)
	shown := regexp.MustCompile("(?s)```text\n(01a203d2-90b9 .*?)```").FindSubmatch(page)
	if drawn := textOf(drawTree(seen[client.SessionTree]{value: planner()}, style{width: 80, unicode: true})); shown == nil || drawn != string(shown[1]) {
		t.Errorf("it is\n%s", drawn)
	}
}

func TestATreeFitsIntoTheTerminal(t *testing.T) {
	t.Parallel()
	v := seen[client.SessionTree]{value: planner(), away: "since 10:00:00: connection refused"}
	for _, height := range []int{1, 4, 5, 24} {
		for _, width := range []int{1, 12, 30, 200} {
			lines := drawTree(v, style{width: width, height: height})
			if len(lines) > max(height, 3) {
				t.Errorf("%d rows: %d lines", height, len(lines))
			}
			for _, l := range lines {
				if l.columns() > max(width-1, 1) {
					t.Errorf("%d columns: %q", width, l.text(false))
				}
			}
		}
	}
	if cut := textOf(drawTree(v, style{width: 80, height: 5})); !strings.Contains(cut, "and 2 more\nsince 10:00:00") || !strings.Contains(cut, "|- 01a203d2-92f7 ") {
		t.Errorf("it is\n%s", cut)
	}
}
