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

// Bars draws horizontal bars from top to bottom, as an SVG for any page. The label X applies to the values. A value or goal
// that is not finite, or negative, is an error.
func Bars(l Labels, all ...Bar) ([]byte, error) {
	if len(all) == 0 {
		return nil, ErrNothing
	}
	values, names, figures := extent{}, 0.0, 0.0
	var legend []entry
	for _, b := range all {
		if !isLength(b.Value) || !isLength(b.Goal) {
			return nil, fmt.Errorf("chart: bar %q has the value %v and the goal %v", b.Name, b.Value, b.Goal)
		}
		if values = values.with(b.Value); b.Goal > 0 {
			values, legend = values.with(b.Goal), []entry{{"goal", goalStroke}}
		}
		names = max(names, widthOf(fit(line(b.Name), tickSize, nameWidth), tickSize))
		figures = max(figures, widthOf(figure(b), tickSize))
	}
	c := newCanvas(l.Title, legend)
	f := frame{canvas: c, x: newScale(values, false, true), y: scale{extent: extent{0, 1}}, left: margin + names + 8,
		right: canvasWidth - margin - figures - valueGap, top: c.top, bottom: c.top + float64(barPitch*len(all))}
	height := f.bottom + 2*tickSize + margin
	label := line(l.X)
	if label != "" {
		height += textSize + 4
	}
	f.drawX(label, height-margin)
	for i, b := range all {
		f.drawBar(b, f.top+barPitch*(float64(i)+0.5))
	}
	return c.document(l.Title, height), nil
}

// isLength reports whether v can be the length of a bar.
func isLength(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// drawBar draws a bar, its name, its goal, and its value as text.
func (f *frame) drawBar(b Bar, y float64) {
	f.text(f.left-8, y+tickSize*0.35, "end", tickSize, fit(line(b.Name), tickSize, nameWidth))
	end, _ := f.at(b.Value, 0)
	fmt.Fprintf(f, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`, f.left, y-barWidth/2, end-f.left, barWidth, palette[0])
	if b.Goal > 0 {
		mark, _ := f.at(b.Goal, 0)
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
