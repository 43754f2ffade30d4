package chart

import "errors"

// Labels are the texts and scales of a drawing of measurements. A logarithmic axis shows only positive values.
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
var ErrNothing = errors.New("chart: nothing to draw")
