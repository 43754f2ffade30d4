package chart

import (
	"fmt"
	"strings"
)

// draw writes the drawing: ticks with lines, a bar for each day, and some of the days.
func (s stack) draw(out *strings.Builder, title string) {
	a := s.axis()
	class := "chart-plot"
	if a.longestLabel() > narrowLabel {
		class += " chart-wide"
	}
	fmt.Fprintf(out, `<svg class="%s" width="100%%" height="%d" role="img"><title>%s</title><desc>%s</desc>`,
		class, plotRoom, heading(title), s.description())
	for _, tick := range a.ticks() {
		y := hundredths(plotTop*100 + a.y(tick, plotHeight))
		class := "chart-line"
		if tick == 0 {
			class = "chart-zero"
		}
		fmt.Fprintf(out, `<line class="%s" x1="0" x2="100%%" y1="%s" y2="%s"/><text class="chart-tick" x="-8" y="%s" dy="4">%s</text>`,
			class, y, y, y, a.label(tick))
	}
	every := (s.bars-1)/dayLabels + 1
	for bar := range s.bars {
		s.drawBar(out, a, bar)
		if (s.bars-1-bar)%every == 0 { // the last one always
			fmt.Fprintf(out, `<text class="chart-day" x="%s" y="%d">%s</text>`, s.at(100*bar+50), plotRoom-4, date(s.from+bar).Format("Jan 2"))
		}
	}
	out.WriteString("</svg>")
}

// at returns where the hundredths of a bar's width lie, as a percentage of the plot's width.
func (s stack) at(barHundredths int) string {
	return percent(int64(barHundredths), int64(100*s.bars))
}

// drawBar stacks what is above zero upwards, and what is below downwards.
func (s stack) drawBar(out *strings.Builder, a axis, bar int) {
	drawn := false
	up, down := int64(0), int64(0)
	for i, one := range s.series {
		value := one.values[bar]
		if value == 0 {
			continue
		}
		if !drawn {
			fmt.Fprintf(out, `<g class="chart-bar"><title>%s: %s</title>`, s.day(bar), s.unit.Text(s.sumOf(bar)))
			drawn = true
		}
		from := &up
		if value < 0 {
			from = &down
		}
		start, end := a.y(*from, plotHeight), a.y(plus(*from, value), plotHeight)
		*from = plus(*from, value)
		fmt.Fprintf(out, `<rect class="%s" x="%s" width="%s" y="%s" height="%s"/>`, s.colour(i), s.at(100*bar+10), s.at(80),
			hundredths(plotTop*100+min(start, end)), hundredths(max(start, end)-min(start, end)))
	}
	if drawn {
		out.WriteString("</g>")
	}
}

// colour returns the class of a series.
func (s stack) colour(i int) string {
	if i == mostSeries-1 {
		return "chart-others"
	}
	return fmt.Sprintf("chart-%d", i+1)
}

// axis includes the highest stack and the lowest.
func (s stack) axis() axis {
	least, most := int64(0), int64(0)
	for bar := range s.bars {
		up, down := int64(0), int64(0)
		for _, one := range s.series {
			up, down = plus(up, max(one.values[bar], 0)), plus(down, min(one.values[bar], 0))
		}
		least, most = min(least, down), max(most, up)
	}
	return newAxis(s.unit, least, most)
}

// description says what the eye sees first: the days, the sum, and the highest bar.
func (s stack) description() string {
	highest := 0
	for bar := range s.bars {
		if s.sumOf(bar) > s.sumOf(highest) {
			highest = bar
		}
	}
	text := fmt.Sprintf("%s to %s: %s in all.", s.day(0), s.day(s.bars-1), s.unit.Text(s.sum()))
	if len(s.series) > 0 {
		text += fmt.Sprintf(" The most is %s, on %s. The table below has all figures.", s.unit.Text(s.sumOf(highest)), s.day(highest))
	}
	return text
}

// legend names the colours, with the sum of each series.
func (s stack) legend(out *strings.Builder) {
	if len(s.series) == 0 {
		return
	}
	out.WriteString(`<ul class="chart-legend">`)
	for i, one := range s.series {
		fmt.Fprintf(out, `<li><svg class="chart-key" width="12" height="12" aria-hidden="true"><rect class="%s" width="12" height="12"/></svg>`+
			` <bdi>%s</bdi> <span class="chart-figure">%s</span></li>`, s.colour(i), name(one.name), s.unit.Text(one.sum))
	}
	out.WriteString("</ul>")
}

// table has every figure that the drawing shows, for those who cannot see it and those who want it exactly.
func (s stack) table(out *strings.Builder, title string) {
	if len(s.series) == 0 {
		return
	}
	fmt.Fprintf(out, `<details class="chart-data"><summary>Show as a table</summary><div class="chart-scroll" role="region" tabindex="0" aria-label="%s">`+
		`<table><caption>%s</caption><thead><tr><th scope="col">Day (UTC)</th>`, heading(title+", as a table"), heading(title))
	for _, one := range s.series {
		fmt.Fprintf(out, `<th scope="col"><bdi>%s</bdi></th>`, name(one.name))
	}
	out.WriteString(`<th scope="col">All</th></tr></thead><tbody>`)
	for bar := range s.bars {
		fmt.Fprintf(out, `<tr><th scope="row">%s</th>`, s.day(bar))
		for _, one := range s.series {
			fmt.Fprintf(out, "<td>%s</td>", s.unit.Text(one.values[bar]))
		}
		fmt.Fprintf(out, "<td>%s</td></tr>", s.unit.Text(s.sumOf(bar)))
	}
	out.WriteString(`</tbody><tfoot><tr><th scope="row">All</th>`)
	for _, one := range s.series {
		fmt.Fprintf(out, "<td>%s</td>", s.unit.Text(one.sum))
	}
	fmt.Fprintf(out, "<td>%s</td></tr></tfoot></table></div></details>", s.unit.Text(s.sum()))
}
