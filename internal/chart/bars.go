package chart

import (
	"fmt"
	"math"
)

const (
	barPitch  = 38  // pixels between the tops of two bars
	barWidth  = 20  // pixels
	nameWidth = 250 // pixels for a name
	valueGap  = 6   // pixels between a bar, or its goal, and its value as text
)

var goalStroke = stroke{colour: palette[1], width: 3}

// Bars draws horizontal bars from top to bottom, as an SVG for any page. The labels X and LogX apply to the values. A value or goal
// that is not finite, negative, or zero on a logarithmic axis is an error.
func Bars(l Labels, all ...Bar) ([]byte, error) {
	if len(all) == 0 {
		return nil, ErrNothing
	}
	values, names, figures := nothing(), 0.0, 0.0
	var legend []entry
	if !l.LogX {
		values = values.with(0)
	}
	for _, b := range all {
		if !isLength(b.Value) || !isLength(b.Goal) || !canDraw(b.Value, l.LogX) {
			return nil, fmt.Errorf("chart: bar %q has the value %v and the goal %v", b.Name, b.Value, b.Goal)
		}
		if values = values.with(b.Value); b.Goal > 0 {
			values, legend = values.with(b.Goal), []entry{{"goal", goalStroke}}
		}
		names = max(names, widthOf(fit(line(b.Name), tickSize, nameWidth), tickSize))
		figures = max(figures, widthOf(figure(b), tickSize))
	}
	if l.LogX {
		values.least = stepDown(values.least / 2) // otherwise the shortest bar has no length
	}
	c := newCanvas(l.Title, legend)
	f := frame{canvas: c, x: newScale(values, l.LogX, true), y: scale{extent: extent{0, 1}}, left: margin + names + 8,
		right: canvasWidth - margin - figures - valueGap, top: c.top, bottom: c.top + float64(barPitch*len(all))}
	height := f.bottom + 2*tickSize + margin
	if label := line(l.X); label != "" {
		height += textSize + 4
		c.text((f.left+f.right)/2, height-margin, "middle", textSize, fit(label, textSize, f.right-f.left))
	}
	f.drawValues()
	for i, b := range all {
		f.drawBar(b, f.top+barPitch*(float64(i)+0.5))
	}
	return c.document(l.Title, height), nil
}

// isLength reports whether v can be the length of a bar.
func isLength(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// drawValues draws the axis of the values, and a grid.
func (f *frame) drawValues() {
	axis := stroke{colour: faint, width: 1}
	for _, t := range f.x.ticks {
		at, _ := f.at(t.at, 0)
		if t.label != "" {
			f.line(stroke{colour: raster, width: 1}, at, f.top, at, f.bottom)
			f.text(at, f.bottom+6+tickSize, "middle", tickSize, t.label)
		}
		f.line(axis, at, f.bottom, at, f.bottom+5)
	}
	f.line(axis, f.left, f.bottom, f.right, f.bottom)
}

// drawBar draws a bar, its name, its goal, and its value as text.
func (f *frame) drawBar(b Bar, y float64) {
	f.text(f.left-8, y+tickSize*0.35, "end", tickSize, fit(line(b.Name), tickSize, nameWidth))
	end := f.left
	if b.Value > 0 {
		end, _ = f.at(b.Value, 0)
	}
	fmt.Fprintf(f, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`, f.left, y-barWidth/2, end-f.left, barWidth, palette[0])
	if b.Goal > 0 {
		mark, _ := f.at(max(b.Goal, f.x.least), 0)
		f.line(goalStroke, mark, y-barWidth/2-4, mark, y+barWidth/2+4)
		if mark > end-2 && mark < end+2*valueGap+widthOf(figure(b), tickSize) {
			end = mark // the text starts after the goal
		}
	}
	f.text(end+valueGap, y+tickSize*0.35, "start", tickSize, figure(b))
}

func figure(b Bar) string {
	if b.Goal > 0 {
		return number(b.Value) + " (goal " + number(b.Goal) + ")"
	}
	return number(b.Value)
}
