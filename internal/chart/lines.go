package chart

import (
	"fmt"
	"slices"
	"strings"
)

// Lines draws series in one coordinate system, as an SVG for any page. Points that are not finite, or not positive on a
// logarithmic axis, are gaps in their line. It returns ErrNothing if there are no other points. A linear Y axis includes zero.
func Lines(l Labels, lines ...Series) ([]byte, error) {
	x, y := nothing(), nothing()
	var legend []entry
	for i, s := range lines {
		if len(s.X) != len(s.Y) {
			return nil, fmt.Errorf("chart: series %q has %d values of X and %d of Y", s.Name, len(s.X), len(s.Y))
		}
		for i := range s.X {
			if canDraw(s.X[i], l.LogX) && canDraw(s.Y[i], l.LogY) {
				x, y = x.with(s.X[i]), y.with(s.Y[i])
			}
		}
		legend = append(legend, entry{s.Name, strokeOf(i)})
	}
	if x.empty() {
		return nil, ErrNothing
	}
	if !l.LogY {
		y = y.with(0)
	}
	c := newCanvas(l.Title, legend)
	f := frame{canvas: c, x: newScale(x, l.LogX, false), y: newScale(y, l.LogY, true), top: c.top + tickSize/2, bottom: lineHeight - margin - 2*tickSize, right: canvasWidth - 2*margin}
	if l.X != "" {
		f.bottom -= textSize + 4
	}
	f.drawAxes(l)
	for i, s := range slices.Backward(lines) { // draws the first on top
		f.drawSeries(l, s, strokeOf(i))
	}
	return c.document(l.Title, lineHeight), nil
}

// frame is where the points of a drawing are.
type frame struct {
	*canvas
	x, y                     scale
	left, right, top, bottom float64
}

func (f *frame) at(x, y float64) (float64, float64) {
	return f.left + f.x.part(x)*(f.right-f.left), f.bottom - f.y.part(y)*(f.bottom-f.top)
}

// drawAxes draws the axes, their ticks and labels, and a grid. The labels of Y decide where the left is.
func (f *frame) drawAxes(l Labels) {
	f.left = 2*margin + 5
	for _, t := range f.y.ticks {
		f.left = max(f.left, margin+5+widthOf(t.label, tickSize))
	}
	if label := line(l.Y); label != "" {
		f.left += textSize + 8
		at := fmt.Sprintf(`transform="rotate(-90 %d %.1f)"`, margin+textSize, (f.top+f.bottom)/2)
		f.text(margin+textSize, (f.top+f.bottom)/2, "middle", textSize, fit(label, textSize, f.bottom-f.top), at)
	}
	for _, t := range f.y.ticks {
		_, at := f.at(f.x.least, t.at)
		if t.label != "" {
			f.line(gridStroke, f.left, at, f.right, at)
			f.text(f.left-7, at+tickSize*0.35, "end", tickSize, t.label)
		}
		f.line(axisStroke, f.left-5, at, f.left, at)
	}
	f.drawX(line(l.X), lineHeight-margin)
	f.line(axisStroke, f.left, f.top, f.left, f.bottom)
}

// drawX draws the axis of X with its ticks, a grid, and its label at a height.
func (f *frame) drawX(label string, y float64) {
	if label != "" {
		f.text((f.left+f.right)/2, y, "middle", textSize, fit(label, textSize, f.right-f.left))
	}
	for _, t := range f.x.ticks {
		at, _ := f.at(t.at, f.y.least)
		if t.label != "" {
			f.line(gridStroke, at, f.top, at, f.bottom)
			f.text(at, f.bottom+6+tickSize, "middle", tickSize, t.label)
		}
		f.line(axisStroke, at, f.bottom, at, f.bottom+5)
	}
	f.line(axisStroke, f.left, f.bottom, f.right, f.bottom)
}

// drawSeries draws a line cut at its gaps; a point without a neighbour is a dot.
func (f *frame) drawSeries(l Labels, s Series, style stroke) {
	var points []string
	end := func() {
		switch {
		case len(points) == 1:
			x, y, _ := strings.Cut(points[0], ",")
			fmt.Fprintf(f, `<circle cx="%s" cy="%s" r="3" fill="%s"/>`, x, y, style.colour)
		case len(points) > 1:
			fmt.Fprintf(f, `<polyline points="%s" %v/>`, strings.Join(points, " "), style)
		}
		points = nil
	}
	for i := range s.X {
		if !canDraw(s.X[i], l.LogX) || !canDraw(s.Y[i], l.LogY) {
			end()
			continue
		}
		x, y := f.at(s.X[i], s.Y[i])
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
	}
	end()
}
