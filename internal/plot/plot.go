// Package plot draws measurements as SVG, with gonum.org/v1/plot.
//
//	svg, err := plot.Lines(plot.Labels{Title: "Throughput", X: "seconds", Y: "requests/s"},
//		plot.Series{Name: "answered", X: seconds, Y: rates})
//
// A drawing is one svg element without an XML declaration, so that it can be a file of its own or part of an HTML page,
// several times. It has a white background, and a title for screen readers. The colours are those of Okabe and Ito, which
// colour-blind people can distinguish; the strokes differ too. Text that does not fit is truncated.
package plot

import (
	"errors"
)

// Labels are the texts and scales of a drawing. A logarithmic axis shows only positive values.
type Labels struct {
	Title, X, Y string
	LogX, LogY  bool
}

// Series is one line. X and Y have the same length.
type Series struct {
	Name string
	X, Y []float64
}

// Bar is one value with an optional goal. A goal of 0 means none.
type Bar struct {
	Name        string
	Value, Goal float64
}

// ErrNothing means that no value can be drawn.
var ErrNothing = errors.New("plot: nothing to draw")
