package plot

import (
	"fmt"
	"math"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	barPitch   = 38  // points between the tops of two bars
	barWidth   = 20  // points
	barSurplus = 110 // points around the bars, for the axis, the title and the legend
	nameWidth  = 250 // points for a name
	valueGap   = 6   // points between a bar, or its goal, and its value as text
)

// Bars draws horizontal bars from top to bottom, so that their names have space. The labels X and LogX apply to the values. A
// value or goal that is not finite, negative, or zero on a logarithmic axis is an error.
func Bars(l Labels, bars ...Bar) ([]byte, error) {
	if len(bars) == 0 {
		return nil, ErrNothing
	}
	for _, b := range bars {
		if !isLength(b.Value) || !isLength(b.Goal) || !canDraw(b.Value, l.LogX) {
			return nil, fmt.Errorf("plot: bar %q has the value %v and the goal %v", b.Name, b.Value, b.Goal)
		}
	}
	return drawBars(l, bars)
}

// isLength reports whether v can be the length of a bar.
func isLength(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

func drawBars(l Labels, bars []Bar) ([]byte, error) {
	p := newPlot(l)
	values, hasGoal := nothing(), false
	if !l.LogX {
		values = values.with(0)
	}
	for _, b := range bars {
		values = values.with(b.Value)
		if b.Goal > 0 {
			values, hasGoal = values.with(b.Goal), true
		}
	}
	if l.LogX {
		values.least = stepDown(values.least / 2) // otherwise the shortest bar has no length
	}
	setUpAxis(&p.X, values, l.LogX, true)

	p.Y.Min, p.Y.Max = -0.5, float64(len(bars))-0.5
	p.Y.Tick.Length, p.Y.Tick.Color = 6, ground // space between names and axis
	names := make(plot.ConstantTicks, len(bars))
	for i, b := range bars {
		at := float64(len(bars) - 1 - i)
		names[i] = plot.Tick{Value: at, Label: fit(p.Y.Tick.Label, clean(b.Name), nameWidth)}
	}
	p.Y.Tick.Marker = names
	p.Add(grid{vertical: true}, barsPlotter(bars))
	d := drawing{title: l.Title, height: vg.Length(barSurplus + barPitch*len(bars)), plot: p}
	if hasGoal {
		d.legend = []entry{{"goal", goalStyle}}
	}
	return d.svg()
}

var goalStyle = draw.LineStyle{Color: goal, Width: 3}

// barsPlotter draws bars, the first on top. It is a plot.Plotter and a plot.GlyphBoxer.
type barsPlotter []Bar

// Plot draws the bars, their goals, and the values as text.
func (bars barsPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := figures()
	for i, b := range bars {
		at := y(float64(len(bars) - 1 - i))
		end := c.Min.X
		if b.Value > 0 {
			end = x(b.Value)
		}
		c.FillPolygon(palette[0], []vg.Point{
			{X: c.Min.X, Y: at - barWidth/2}, {X: end, Y: at - barWidth/2},
			{X: end, Y: at + barWidth/2}, {X: c.Min.X, Y: at + barWidth/2},
		})
		label := figure(b)
		if b.Goal > 0 {
			mark := x(b.Goal)
			c.StrokeLine2(goalStyle, mark, at-barWidth/2-4, mark, at+barWidth/2+4)
			if from := end - 2; mark > from && mark < end+2*valueGap+style.Width(label) {
				end = mark // the text starts after the goal
			}
		}
		c.FillText(style, vg.Point{X: end + valueGap, Y: at}, label)
	}
}

// GlyphBoxes reserves space for the text.
func (bars barsPlotter) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	style := figures()
	boxes := make([]plot.GlyphBox, len(bars))
	for i, b := range bars {
		right := max(b.Value, b.Goal)
		if right == 0 {
			right = p.X.Min
		}
		boxes[i] = plot.GlyphBox{X: p.X.Norm(right), Y: p.Y.Norm(float64(len(bars) - 1 - i)), Rectangle: vg.Rectangle{
			Max: vg.Point{X: valueGap + style.Width(figure(b)) + 4, Y: 1},
		}}
	}
	return boxes
}

func figures() text.Style {
	style := textStyle(tickSize, xfont.WeightNormal)
	style.YAlign = text.YCenter
	return style
}

func figure(b Bar) string {
	if b.Goal > 0 {
		return number(b.Value) + " (goal " + number(b.Goal) + ")"
	}
	return number(b.Value)
}
