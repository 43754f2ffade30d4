package chart

import (
	"fmt"
	"html/template"
	"time"
)

// Lifetime is a bar of the time that has passed from Start to End.
type Lifetime struct {
	Label           string // "Time"
	Start, End, Now time.Time
	Expires         time.Time // the limit, of which something may end early; End by default
}

// SVG returns the drawing. A script may set the width of its rect of class chart-elapsed, and the classes
// chart-near and chart-full of the drawing.
func (l Lifetime) SVG() template.HTML {
	whole, passed := l.End.Sub(l.Start), l.Now.Sub(l.Start)
	return template.HTML(fmt.Sprintf(`<svg class="chart-usage%s" width="100%%" height="14" role="img"><title>%s: %s</title><desc>%s</desc>`+
		`<rect class="chart-track" width="100%%" height="14" rx="2"/><rect class="chart-elapsed" width="%s" height="14"/></svg>`,
		l.Level().class(), name(l.Label), l.summary(), l.Description(), percent(int64(passed), max(int64(whole), 1))))
}

// Description is the drawing's desc, for scripts that move the end.
func (l Lifetime) Description() string { return "Until " + l.End.UTC().Format(time.DateTime) + " UTC." }

// Level says how near the limit the time is.
func (l Lifetime) Level() Level { return LevelOf(l.percent()) }

// EndLevel is the level at the end.
func (l Lifetime) EndLevel() Level {
	l.Now = l.End
	return l.Level()
}

// NearAt is when the level becomes Near.
func (l Lifetime) NearAt() time.Time {
	return l.Start.Add(time.Duration(Scale(int64(max(l.limit(), 0)), nearPercent, fullPercent)))
}

// Share writes how much of the time has passed, in whole percent.
func (l Lifetime) Share() string {
	if l.isOver() {
		return over
	}
	return grouped(l.percent()) + " %"
}

func (l Lifetime) percent() int64 {
	return Percent(int64(min(l.Now.Sub(l.Start), l.End.Sub(l.Start))), int64(l.limit()))
}

func (l Lifetime) limit() time.Duration {
	if l.Expires.IsZero() {
		return l.End.Sub(l.Start)
	}
	return l.Expires.Sub(l.Start)
}

const over = "over"

func (l Lifetime) isOver() bool { return !l.Now.Before(l.End) }

func (l Lifetime) summary() string {
	left := l.End.Sub(l.Now)
	if l.isOver() {
		return over
	}
	return Duration(left) + " left of " + Duration(l.End.Sub(l.Start))
}

// Duration writes a duration in its two largest units, rounded down to seconds: 2 d 3 h, 5 min 10 s, 0 s.
func Duration(d time.Duration) string {
	units := [...]struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, unit := range units {
		if d < unit.size {
			continue
		}
		text := fmt.Sprintf("%d %s", d/unit.size, unit.name)
		if i+1 < len(units) {
			if smaller := units[i+1]; d%unit.size >= smaller.size {
				text += fmt.Sprintf(" %d %s", d%unit.size/smaller.size, smaller.name)
			}
		}
		return text
	}
	return "0 s"
}
