// Package chart draws what was measured as SVG, with gonum.org/v1/plot.
//
//	svg, err := chart.Lines(chart.Labels{Title: "Throughput", X: "seconds", Y: "requests/s"},
//		chart.Series{Name: "answered", X: seconds, Y: rates})
//
// A drawing is one svg element without an XML declaration, so that it can stand in a file of its own as well as inside a
// page of HTML, several times over. It has a white ground, and a title for those who cannot see it. Colours are those of
// Okabe and Ito, which the colour-blind can tell apart; the strokes differ as well. Text is cut where it does not fit.
package chart

import (
	"errors"
	"fmt"
)

// Labels are what stands around a drawing. A logarithmic axis shows values above zero only.
type Labels struct {
	Title, X, Y string
	LogX, LogY  bool
}

// Series is one line. X and Y are of the same length.
type Series struct {
	Name string
	X, Y []float64
}

// Bar is one value, and a goal that is marked beside it; a goal of 0 is none.
type Bar struct {
	Name        string
	Value, Goal float64
}

// ErrNothing means that there is nothing that could be drawn.
var ErrNothing = errors.New("chart: nothing to draw")

// Lines draws series over one another. Points that are not finite, or not above zero on a logarithmic axis, are gaps in
// their line; ErrNothing when there are no others. A linear axis of values includes zero.
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

// Bars draws values under one another, from top to bottom. The bars lie, so that their names have room: the labels X and
// LogX are of the values. A value or goal that is not finite, below zero, or zero on a logarithmic axis is an error.
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
