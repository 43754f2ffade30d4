// Package chart draws figures as SVG. Lines and Bars draw measurements, each a file of its own; the rest draws exact figures for a
// web page: whole micro-dollars or counts, over days of UTC.
//
//	chart.Days{Title: "Spent by agent", Unit: chart.MicroUSD, From: 20779, To: 20808, Entries: entries}.HTML()
//
// Lengths and labels come from integers, so no label is ever rounded. A drawing has a width of 100 % and places what it
// draws by percentages, so its text keeps its size at any width. It has role="img", a title and a description; what has
// more figures than a sentence holds comes with a table. There is no style attribute, no script and no id: the colours are
// classes in CSS, for light and dark. Names may come from strangers: they are escaped, isolated and cut. The same data
// always gives the same text.
package chart

import (
	_ "embed"
)

// CSS styles all drawings. Every colour is a custom property, --chart-…, that the page may set otherwise.
//
//go:embed chart.css
var CSS string

// Unit says what a value counts, and so how it is written.
type Unit uint8

const (
	// Count is a number of whole things: 12,345.
	Count Unit = iota
	// MicroUSD is an amount in millionths of a US dollar: $12.30.
	MicroUSD
)

// Text writes a value exactly.
func (u Unit) Text(value int64) string {
	if u == MicroUSD {
		return Dollars(value)
	}
	return grouped(value)
}
