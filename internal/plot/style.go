package plot

import (
	"image/color"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes in points. A point is a pixel unless the drawing is scaled.
const (
	width, height = 760, 400 // of a line chart; the height of a bar chart depends on its bars
	margin        = 14
	titleSize     = 16
	textSize      = 13
	tickSize      = 12
)

var (
	ink    = color.NRGBA{0x22, 0x26, 0x2b, 0xff}
	faint  = color.NRGBA{0x9a, 0xa1, 0xa9, 0xff} // axes and ticks
	raster = color.NRGBA{0xe6, 0xe8, 0xeb, 0xff} // grid
	ground = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	goal   = color.NRGBA{0xd5, 0x5e, 0x00, 0xff}

	// Okabe and Ito's palette without its yellow, which is too light for a thin line.
	palette = [...]color.NRGBA{
		{0x00, 0x72, 0xb2, 0xff}, // blue
		{0xd5, 0x5e, 0x00, 0xff}, // vermilion
		{0x00, 0x9e, 0x73, 0xff}, // green
		{0xcc, 0x79, 0xa7, 0xff}, // purple
		{0xe6, 0x9f, 0x00, 0xff}, // orange
		{0x56, 0xb4, 0xe9, 0xff}, // sky
		{0x44, 0x49, 0x50, 0xff}, // grey
	}
	dashes = [...][]vg.Length{nil, {7, 3}, {2, 2.5}, {10, 3, 2, 3}}
)

// styleOf returns the style of series i. Neighbours differ in colour and in stroke.
func styleOf(i int) draw.LineStyle {
	return draw.LineStyle{Color: palette[i%len(palette)], Width: 2, Dashes: dashes[i%len(dashes)]}
}

func textStyle(size vg.Length, weight xfont.Weight) text.Style {
	return text.Style{
		Color:   ink,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: size, Weight: weight},
		Handler: plot.DefaultTextHandler,
	}
}
