package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"remit/client"
	"remit/internal/chart"
)

// style is what a terminal can show.
type style struct {
	width   int  // columns of the terminal
	height  int  // its rows; 0: not known
	unicode bool // otherwise ASCII only
	colour  bool
}

// line is a line of a drawing. Each span has one colour.
type line []span

type span struct {
	text   string
	colour colour
}

// colour is a parameter of the terminal's SGR sequence.
type colour string

const (
	plain  colour = ""
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
)

const (
	labelWidth = 9  // the widest label and a space
	leastBar   = 10 // columns below which a bar gives way to shorter words
)

// gauge is one budget of a session, in any unit, with a long and a short text. Its numbers come from a service and may be
// out of range.
type gauge struct {
	label            string
	used, held, over int64
	limit            int64
	words            [2]string
}

// percent returns how much of the limit is used, held or exceeded, in whole percent; 100 for a limit of 0.
func (g gauge) percent() int64 {
	return chart.Percent(sum(g.used, g.held, g.over), g.limit)
}

// sum adds the positive parts, and saturates at math.MaxInt64.
func sum(parts ...int64) int64 {
	var total int64
	for _, part := range parts {
		total += min(max(part, 0), math.MaxInt64-total)
	}
	return total
}

func (g gauge) colour() colour {
	switch chart.LevelOf(g.percent()) {
	case chart.Full:
		return red
	case chart.Near:
		return yellow
	}
	return green
}

// cells returns how many of n cells are used and held. A bar is full only when nothing remains.
func (g gauge) cells(n int) (used, held int) {
	if g.limit <= 0 {
		return n, 0
	}
	share := func(parts ...int64) int { return int(chart.Scale(min(sum(parts...), g.limit), int64(n), g.limit)) }
	used = share(g.used)
	return used, share(g.used, g.held) - used
}

// gaugesOf returns the three budgets of a session at a moment: actions, value and time.
func gaugesOf(s client.SessionInfo, now time.Time) []gauge {
	value := valueGauge(s, fmt.Sprintf("%s used", s.ValueUsed), s.ValueUsed.String())
	if s.ValueHeld > 0 {
		value.words[0] += fmt.Sprintf(" + %s held", s.ValueHeld)
		value.words[1] += "+" + s.ValueHeld.String()
	}
	if s.ValueDelegated > 0 {
		value.words[0] += fmt.Sprintf(" + %s delegated", s.ValueDelegated)
		value.words[1] += "+" + s.ValueDelegated.String()
	}
	value.words[0] += fmt.Sprintf(" of %s USD", s.MaxValue)
	value.words[1] += "/" + s.MaxValue.String()
	if s.ValueOverage > 0 {
		value.words[0] += fmt.Sprintf(", %s beyond", s.ValueOverage)
		value.words[1] += fmt.Sprintf(" %s over", s.ValueOverage)
	}
	actions := actionsGauge(s, fmt.Sprintf("%d used of %d", s.ActionCount, s.MaxActions))
	if s.ActionsDelegated > 0 {
		actions.words = [2]string{
			fmt.Sprintf("%d used + %d delegated of %d", s.ActionCount, s.ActionsDelegated, s.MaxActions),
			fmt.Sprintf("%d+%d/%d", s.ActionCount, s.ActionsDelegated, s.MaxActions),
		}
	}
	return []gauge{actions, value, lifetimeOf(s, now)}
}

func valueGauge(s client.SessionInfo, long, short string) gauge {
	return gauge{
		label: "value", used: int64(s.ValueUsed), held: sum(int64(s.ValueHeld), int64(s.ValueDelegated)), over: int64(s.ValueOverage),
		limit: int64(s.MaxValue), words: [2]string{long, short},
	}
}

func actionsGauge(s client.SessionInfo, long string) gauge {
	short := fmt.Sprintf("%d/%d", s.ActionCount, s.MaxActions)
	return gauge{label: "actions", used: s.ActionCount, held: s.ActionsDelegated, limit: s.MaxActions, words: [2]string{long, short}}
}

// lifetimeOf returns the gauge of a session's lifetime, by this machine's clock.
func lifetimeOf(s client.SessionInfo, until time.Time) gauge {
	if !s.EndedAt.IsZero() {
		until = s.EndedAt
	}
	life := max(s.ExpiresAt.Sub(s.CreatedAt), 0)
	gone := min(max(until.Sub(s.CreatedAt), 0), life)
	g := gauge{label: "time", used: int64(gone), limit: int64(life)}
	left := (life - gone).Truncate(time.Second)
	switch s.Status {
	case "active":
		g.words = [2]string{fmt.Sprintf("%s left of %s", left, life.Truncate(time.Second)), left.String()}
	default:
		over := fmt.Sprintf("over after %s", gone.Truncate(time.Second))
		g.words = [2]string{over, gone.Truncate(time.Second).String()}
	}
	return g
}

// drawSession returns a session as lines. They leave one column free, because a full line would wrap.
func drawSession(v seen[client.SessionInfo], s style) []line {
	width := max(s.width-1, 1)
	lines := []line{{
		{printable(statusOf(v.value)), statusColour(statusOf(v.value))}, {"  session " + printable(v.value.ID), plain},
	}}
	gauges := gaugesOf(v.value, v.now)
	words, barWidth := fit(gauges, width)
	for i, g := range gauges {
		lines = append(lines, g.line(barWidth, words[i], s.unicode))
	}
	if v.away != "" {
		lines = append(lines, line{{printable(v.away), red}})
	}
	for i := range lines {
		lines[i] = lines[i].cut(width)
	}
	return lines
}

func statusColour(status string) colour {
	if status == "active" {
		return green
	}
	return yellow
}

// fit chooses the longest words that leave room for bars, the same form for all gauges, and returns the bars' width.
func fit(gauges []gauge, width int) (words []string, bar int) {
	percents := make([]string, len(gauges))
	for i, g := range gauges {
		percents[i] = fmt.Sprintf("%d%%", g.percent())
	}
	for form := range gauges[0].words {
		words = words[:0]
		for i, g := range gauges {
			words = append(words, fmt.Sprintf("%4s  %s", percents[i], g.words[form]))
		}
		if bar = width - labelWidth - 1 - longest(words); bar >= leastBar {
			return words, bar
		}
	}
	return percents, max(width-labelWidth-1-longest(percents), 0)
}

func longest(words []string) int {
	most := 0
	for _, w := range words {
		most = max(most, len(w))
	}
	return most
}

// line returns the gauge as a line: label, bar, words.
func (g gauge) line(width int, words string, unicode bool) line {
	marks := [3]string{"#", "=", "."}
	if unicode {
		marks = [3]string{"█", "▒", "░"}
	}
	used, held := g.cells(width)
	return line{
		{fmt.Sprintf("%-*s", labelWidth, g.label), plain},
		{strings.Repeat(marks[0], used), g.colour()},
		{strings.Repeat(marks[1], held), cyan},
		{strings.Repeat(marks[2], width-used-held), dim},
		{" " + words, plain},
	}
}

// cut returns the line without the columns beyond the width.
func (l line) cut(width int) line {
	var short line
	for _, s := range l {
		whole := s.text
		s.text = cutText(whole, width)
		if width -= columnsOf(s.text); s.text != whole {
			width = 0 // nothing follows the cut, even where half of a wide character left a column free
		}
		if s.text != "" {
			short = append(short, s)
		}
	}
	return short
}

// cutText returns the longest prefix of the text that fits into the width.
func cutText(text string, width int) string {
	for i, r := range text {
		if width -= columns(r); width < 0 {
			return text[:i]
		}
	}
	return text
}

// columns returns the width of the line.
func (l line) columns() int {
	n := 0
	for _, s := range l {
		n += columnsOf(s.text)
	}
	return n
}

// text returns the line for the terminal.
func (l line) text(colours bool) string {
	var text strings.Builder
	for _, s := range l {
		if colours && s.colour != plain {
			text.WriteString("\x1b[" + string(s.colour) + "m" + s.text + "\x1b[0m")
		} else {
			text.WriteString(s.text)
		}
	}
	return text.String()
}
