package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"remit/client"
)

type treeOfSession struct {
	asEither
	ID       string        `arg:"" help:"The session's id."`
	Watch    bool          `env:"-" help:"Show the tree live until its root session ends."`
	Interval time.Duration `default:"1s" env:"-" help:"Time between two polls with --watch, at least 100ms. The default is 1s."`
}

// Validate is called by the flag parser.
func (c *treeOfSession) Validate() error { return checkInterval(c.Interval) }

// Help is appended to the command's help.
func (c *treeOfSession) Help() string {
	return "With --watch it draws, in a terminal, a bar for each session, of the limit that is nearest, and updates the drawing in place. " +
		"Otherwise it prints the tree again after each change, or with --json one JSON document per change."
}

// Run shows the session with its descendants.
func (c *treeOfSession) Run() error {
	if c.Watch {
		return watch(&c.asEither, c.Interval, drawTree, writeTree, func(ctx context.Context, s sessions) (client.SessionTree, bool, error) {
			tree, err := s.tree(ctx, c.ID)
			return tree, tree.Status != "active", err
		})
	}
	return c.call(func(ctx context.Context, s sessions) error {
		tree, err := s.tree(ctx, c.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(os.Stdout, tree)
		}
		return writeTree(os.Stdout, seen[client.SessionTree]{value: tree})
	})
}

// node is a session of a tree, with the branches that lead to it.
type node struct {
	branches string
	client.SessionInfo
}

// nodes returns the sessions of a tree from the root down, each before its children.
func nodes(tree client.SessionTree, unicode bool) []node {
	marks := [4]string{"|- ", "`- ", "|  ", "   "}
	if unicode {
		marks = [4]string{"├─ ", "└─ ", "│  ", "   "}
	}
	var all []node
	var add func(t client.SessionTree, own, below string)
	add = func(t client.SessionTree, own, below string) {
		all = append(all, node{own, t.SessionInfo})
		for i, child := range t.Children {
			if i < len(t.Children)-1 {
				add(child, below+marks[0], below+marks[2])
			} else {
				add(child, below+marks[1], below+marks[3])
			}
		}
	}
	add(tree, "", "")
	return all
}

// writeTree writes the tree as a table.
func writeTree(to io.Writer, v seen[client.SessionTree]) error {
	rows := [][]string{{"SESSION", "AGENT", "STATUS", "ACTIONS", "VALUE", "EXPIRES"}}
	for _, n := range nodes(v.value, isUnicode(os.Getenv)) {
		rows = append(rows, []string{
			n.branches + n.ID, n.AgentID, statusOf(n.SessionInfo), actionsOf(n.SessionInfo), valueOf(n.SessionInfo), moment(n.ExpiresAt),
		})
	}
	if err := writeTable(to, rows); err != nil || !isTruncated(v.value) {
		return err
	}
	_, err := fmt.Fprintln(to, truncatedTree)
	return err
}

// truncatedTree is what people read below a tree of which the service left out some children.
const truncatedTree = "Some children are not shown: a tree is read with at most 1000 sessions."

func isTruncated(t client.SessionTree) bool {
	return t.ChildrenTruncated || slices.ContainsFunc(t.Children, isTruncated)
}

// statusOf returns the status of a session as people see it.
func statusOf(s client.SessionInfo) string {
	if s.Status == "active" && !s.SuspendedAt.IsZero() {
		return "suspended"
	}
	return s.Status
}

// actionsOf returns what is used and delegated of a session's actions, and their limit.
func actionsOf(s client.SessionInfo) string {
	text := fmt.Sprint(s.ActionCount)
	if s.ActionsDelegated > 0 {
		text += fmt.Sprintf("+%d delegated", s.ActionsDelegated)
	}
	return text + fmt.Sprintf("/%d", s.MaxActions)
}

// valueOf returns what is used, held and delegated of a session's value, and its limit.
func valueOf(s client.SessionInfo) string {
	text := s.ValueUsed.String()
	if s.ValueHeld > 0 {
		text += "+" + s.ValueHeld.String() + " held"
	}
	if s.ValueDelegated > 0 {
		text += "+" + s.ValueDelegated.String() + " delegated"
	}
	return text + "/" + usd(s.MaxValue)
}

// shortID is how much of a session's id a drawing shows.
const shortID = 13

// drawTree draws a line with a bar for each session. What does not fit into the height of the terminal is only counted.
func drawTree(v seen[client.SessionTree], s style) []line {
	width := max(s.width-1, 1)
	all := nodes(v.value, s.unicode)
	shown, more := all, 0
	room := s.height - 3
	if isTruncated(v.value) {
		room--
	}
	if s.height > 0 && len(all) > max(room, 1) {
		shown, more = all[:max(room, 1)], len(all)-max(room, 1)
	}
	gauges := make([]gauge, len(shown))
	for i, n := range shown {
		gauges[i] = n.gauge()
	}
	label := alignLabels(gauges)
	words, bar := fit(gauges, width-label+labelWidth)
	var lines []line
	for i, g := range gauges {
		lines = append(lines, g.line(bar, words[i], s.unicode).cut(width))
	}
	if more > 0 {
		lines = append(lines, line{{fmt.Sprintf("and %d more", more), dim}}.cut(width))
	}
	if isTruncated(v.value) {
		lines = append(lines, line{{truncatedTree, dim}}.cut(width))
	}
	if v.away != "" {
		lines = append(lines, line{{printable(v.away), red}}.cut(width))
	}
	return lines
}

// alignLabels gives all labels the same width, and returns it.
func alignLabels(gauges []gauge) int {
	label := labelWidth
	for _, g := range gauges {
		label = max(label, columnsOf(g.label)+1)
	}
	for i := range gauges {
		gauges[i].label += strings.Repeat(" ", label-columnsOf(gauges[i].label))
	}
	return label
}

// gauge returns the gauge of the limit that is nearest: that of the value or that of the actions.
func (n node) gauge() gauge {
	nearest := valueGauge(n.SessionInfo, valueOf(n.SessionInfo), n.ValueUsed.String()+"/"+n.MaxValue.String())
	if actions := actionsGauge(n.SessionInfo, actionsOf(n.SessionInfo)+" actions"); actions.percent() > nearest.percent() {
		nearest = actions
	}
	if status := statusOf(n.SessionInfo); status != "active" {
		for i := range nearest.words {
			nearest.words[i] = printable(status) + "  " + nearest.words[i]
		}
	}
	nearest.label = n.branches + cutText(printable(n.ID), shortID)
	return nearest
}
