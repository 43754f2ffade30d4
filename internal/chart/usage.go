package chart

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// Usage is a bar of what a limit is spent on. Used, Held and Delegated are disjoint parts; what they leave of the limit is free.
// Over is what was spent beyond the limit and not charged: it counts in the share, and has no part of the bar.
type Usage struct {
	Label                 string // what the limit is of: "Value"
	Unit                  Unit
	Used, Held, Delegated int64
	Limit, Over           int64
}

// SVG returns the drawing. Its rect elements have the classes chart-used, chart-held and chart-delegated, in this order from
// the left, so that a script may set their x and width. The parts differ in height too. Near and at the limit the drawing also has the class
// chart-near or chart-full, which colour what is used.
func (u Usage) SVG() template.HTML {
	taken := u.taken()
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="chart-usage%s" width="100%%" height="14" role="img"><title>%s</title><desc>%s</desc>`,
		u.Level().class(), html.EscapeString(u.Title()), u.Description())
	out.WriteString(`<rect class="chart-track" width="100%" height="14" rx="2"/>`)
	scale := max(u.Limit, taken, 1)
	u.drawParts(&out, scale)
	if taken > u.Limit {
		at := percent(u.Limit, scale)
		fmt.Fprintf(&out, `<line class="chart-limit" x1="%s" x2="%s" y1="0" y2="14"/>`, at, at)
	}
	out.WriteString("</svg>")
	return template.HTML(out.String())
}

func (u Usage) drawParts(out *strings.Builder, scale int64) {
	from := int64(0)
	for _, p := range [...]struct {
		class     string
		value     int64
		y, height int
	}{{"used", u.Used, 0, 14}, {"held", u.Held, 2, 10}, {"delegated", u.Delegated, 4, 6}} {
		fmt.Fprintf(out, `<rect class="chart-%s" x="%s" width="%s" y="%d" height="%d"/>`,
			p.class, percent(from, scale), percent(p.value, scale), p.y, p.height)
		from = plus(from, max(p.value, 0))
	}
}

// Title says what is used of what, as the drawing's title does: "Value: $3.20 used, $1.00 held of $10.00".
func (u Usage) Title() string {
	text := label(u.Label) + ": " + u.Unit.Text(u.Used) + " used"
	if u.Held != 0 {
		text += ", " + u.Unit.Text(u.Held) + " held"
	}
	if u.Delegated != 0 {
		text += ", " + u.Unit.Text(u.Delegated) + " delegated"
	}
	if text += " of " + u.Unit.Text(u.Limit); u.Over > 0 {
		text += ", " + u.Unit.Text(u.Over) + " beyond"
	}
	return text
}

// Description says what is left, as the drawing's description does: "$5.80 left."
func (u Usage) Description() string {
	taken := u.taken()
	if taken > u.Limit {
		return u.Unit.Text(plus(taken, -u.Limit)) + " beyond the limit."
	}
	return u.Unit.Text(plus(u.Limit, -taken)) + " left."
}

// Level says how near the limit the usage is.
func (u Usage) Level() Level { return LevelOf(u.percent()) }

// Share writes how much of the limit is used, held, delegated and spent beyond it, in whole percent: "90 %".
func (u Usage) Share() string { return grouped(u.percent()) + " %" }

func (u Usage) percent() int64 { return u.ShareOf(fullPercent) }

// ShareOf returns the share as a part of whole, which stands for the limit.
func (u Usage) ShareOf(whole int64) int64 {
	if u.Limit <= 0 {
		return whole
	}
	return Scale(max(plus(u.taken(), max(u.Over, 0)), 0), whole, u.Limit)
}

func (u Usage) taken() int64 { return plus(plus(u.Used, u.Held), u.Delegated) }
