// Package chart draws measurements as SVG, with gonum.org/v1/plot.
//
//	svg, err := chart.Lines(chart.Labels{Title: "Throughput", X: "seconds", Y: "requests/s"},
//		chart.Series{Name: "answered", X: seconds, Y: rates})
//
// A drawing is one svg element without an XML declaration. It works as a file and inside an HTML page, also several times. It
// has a white background, and a title for screen readers. The colours are Okabe and Ito's, which colour-blind people can tell
// apart, and the strokes differ too. Text that does not fit is cut.
package chart

import (
	"errors"
	"fmt"
)

// Labels are the texts around a drawing, and the scales of its axes. A logarithmic axis shows only values above zero.
type Labels struct {
	Title, X, Y string
	LogX, LogY  bool
}

// Series is one line. X and Y have the same length.
type Series struct {
	Name string
	X, Y []float64
}

// Bar is one value with an optional goal, which the drawing marks. 0 means no goal.
type Bar struct {
	Name        string
	Value, Goal float64
}

// ErrNothing means that there is nothing to draw.
var ErrNothing = errors.New("chart: nothing to draw")

// Lines draws several series in one chart. Points that are not finite, or not above zero on a logarithmic axis, are gaps in
// their line. If there are no other points, Lines returns ErrNothing. A linear Y axis includes zero.
func Lines(l Labels, series ...Series) ([]byte, error) {
	lines := make([]line, len(series))
	for i, s := range series {
		if len(s.X) != len(s.Y) {
			return nil, fmt.Errorf("chart: series %q has %d values of X and %d of Y", s.Name, len(s.X), len(s.Y))
		}
		lines[i] = newLine(l, s, styleOf(i))
	}
	return drawLines(l, lines)
}

// Bars draws horizontal bars from top to bottom. X and LogX are for the values. A value or goal that is not finite, below
// zero, or zero on a logarithmic axis is an error.
func Bars(l Labels, bars ...Bar) ([]byte, error) {
	if len(bars) == 0 {
		return nil, ErrNothing
	}
	for _, b := range bars {
		if !isLength(b.Value) || !isLength(b.Goal) || !canDraw(b.Value, l.LogX) {
			return nil, fmt.Errorf("chart: bar %q has the value %v and the goal %v", b.Name, b.Value, b.Goal)
		}
	}
	return drawBars(l, bars)
}
