package chart

import (
	"fmt"
	"html/template"
	"strings"
)

const (
	mostPoints               = 120
	sparkWidth, sparkHeight  = 120, 24 // pixels
	sparkMargin, sparkInside = 2, sparkHeight - 4
)

// Spark is a line without an axis, for one cell of a table. It shows the last 120 values.
type Spark struct {
	Label  string
	Unit   Unit
	Values []int64
}

// SVG returns the drawing.
func (s Spark) SVG() template.HTML {
	values := s.Values[max(0, len(s.Values)-mostPoints):]
	least, most := int64(0), int64(0)
	for _, value := range values {
		least, most = min(least, value), max(most, value)
	}
	var points strings.Builder
	a := axis{above: min(most, limit), below: -max(least, -limit)}
	for i, value := range values {
		x := part(uint64(i), uint64(max(len(values)-1, 1)), 100*(sparkWidth-2*sparkMargin)) + 100*sparkMargin
		fmt.Fprintf(&points, "%s,%s ", hundredths(x), hundredths(100*sparkMargin+s.y(a, value)))
	}
	if len(values) == 1 { // a single point would draw nothing
		fmt.Fprintf(&points, "%d,%s ", sparkWidth-sparkMargin, hundredths(100*sparkMargin+s.y(a, values[0])))
	}
	return template.HTML(fmt.Sprintf(`<svg class="chart-spark" width="%d" height="%d" role="img"><title>%s</title><desc>%s</desc><polyline points="%s"/></svg>`,
		sparkWidth, sparkHeight, name(s.Label), s.description(values, least, most), strings.TrimSpace(points.String())))
}

func (s Spark) y(a axis, value int64) uint64 {
	if a.above == 0 && a.below == 0 {
		return 100 * sparkInside
	}
	return a.y(value, sparkInside)
}

func (s Spark) description(values []int64, least, most int64) string {
	if len(values) == 0 {
		return "No values."
	}
	return fmt.Sprintf("%d values from %s to %s, the last %s.", len(values), s.Unit.Text(least), s.Unit.Text(most), s.Unit.Text(values[len(values)-1]))
}
