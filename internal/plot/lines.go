package plot

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines draws series in one coordinate system. Points that are not finite, or not positive on a logarithmic axis, are gaps in
// their line. It returns ErrNothing if there are no other points. A linear Y axis includes zero.
func Lines(l Labels, series ...Series) ([]byte, error) {
	lines := make([]line, len(series))
	for i, s := range series {
		if len(s.X) != len(s.Y) {
			return nil, fmt.Errorf("plot: series %q has %d values of X and %d of Y", s.Name, len(s.X), len(s.Y))
		}
		lines[i] = newLine(l, s, styleOf(i))
	}
	return drawLines(l, lines)
}

// line is a series cut at its gaps. It is a plot.Plotter.
type line struct {
	name  string
	style draw.LineStyle
	parts []plotter.XYs // none is empty
	x, y  extent
}

func newLine(l Labels, s Series, style draw.LineStyle) line {
	made := line{name: s.Name, style: style, x: nothing(), y: nothing()}
	var part plotter.XYs
	end := func() {
		if len(part) > 0 {
			made.parts = append(made.parts, part)
		}
		part = nil
	}
	for i := range s.X {
		if !canDraw(s.X[i], l.LogX) || !canDraw(s.Y[i], l.LogY) {
			end()
			continue
		}
		part = append(part, plotter.XY{X: s.X[i], Y: s.Y[i]})
		made.x, made.y = made.x.with(s.X[i]), made.y.with(s.Y[i])
	}
	end()
	return made
}

// Plot draws the line; a point without a neighbour is a dot.
func (l line) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, part := range l.parts {
		if len(part) == 1 {
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: l.style.Color, Radius: 3, Shape: draw.CircleGlyph{}},
				vg.Point{X: x(part[0].X), Y: y(part[0].Y)})
			continue
		}
		points := make([]vg.Point, len(part))
		for i, at := range part {
			points[i] = vg.Point{X: x(at.X), Y: y(at.Y)}
		}
		c.StrokeLines(l.style, points)
	}
}

func drawLines(l Labels, lines []line) ([]byte, error) {
	x, y := nothing(), nothing()
	for _, one := range lines {
		x = extent{min(x.least, one.x.least), max(x.most, one.x.most)}
		y = extent{min(y.least, one.y.least), max(y.most, one.y.most)}
	}
	if x.empty() {
		return nil, ErrNothing
	}
	p := newPlot(l)
	if !l.LogY {
		y = y.with(0)
	}
	setUpAxis(&p.X, x, l.LogX, false)
	setUpAxis(&p.Y, y, l.LogY, true)
	p.Add(grid{vertical: true, horizontal: true})
	legend := make([]entry, 0, len(lines))
	for _, one := range slices.Backward(lines) { // draws the first on top
		p.Add(one)
	}
	for _, one := range lines {
		legend = append(legend, entry{one.name, one.style})
	}
	return drawing{title: l.Title, height: height, legend: legend, plot: p}.svg()
}

// grid draws a line at each labelled tick. It is a plot.Plotter.
type grid struct{ vertical, horizontal bool }

// Plot draws the grid.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	style := draw.LineStyle{Color: raster, Width: 1}
	x, y := p.Transforms(&c)
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if g.vertical && t.Label != "" {
			c.StrokeLine2(style, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
		}
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if g.horizontal && t.Label != "" {
			c.StrokeLine2(style, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}
