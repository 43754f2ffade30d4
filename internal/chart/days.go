package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
)

const (
	mostSeries = 8 // the last one is all others
	dayLabels  = 5 // at most, below the bars
	plotHeight = 180
	plotRoom   = plotHeight + 32 // with half a line above and the labels below
	plotTop    = 8

	narrowLabel = 6 // characters for which the style leaves room; wide ones have twice as many
)

// Entry is what one series has on one day. A value below zero corrects an earlier day. Several entries of a series and a day
// are added.
type Entry struct {
	Day   int // since 1970, in UTC
	Name  string
	Value int64
}

// Days are bars for the days From to To, both included, stacked by series: the seven with the largest sums, and all others
// together. Entries of other days are left out.
type Days struct {
	Title    string
	Unit     Unit
	From, To int // days since 1970
	Entries  []Entry
}

// HTML returns a figure: the drawing, its legend with the sum of each series, and a table of all its figures.
func (d Days) HTML() template.HTML {
	s := d.stack()
	var out strings.Builder
	out.WriteString(`<figure class="chart"><figcaption>` + heading(d.Title) + `</figcaption>`)
	s.draw(&out, d.Title)
	s.legend(&out)
	s.table(&out, d.Title)
	out.WriteString("</figure>")
	return template.HTML(out.String())
}

// series is one colour of the stack, with a value for each bar.
type series struct {
	name   string
	sum    int64
	values []int64
}

// stack is what Days show: at most mostSeries series, with a bar for each day.
type stack struct {
	unit   Unit
	from   int // the first day
	bars   int
	series []series
}

func (d Days) stack() stack {
	s := stack{unit: d.Unit, from: d.From, bars: d.To - d.From + 1}
	index := map[string]int{}
	for _, e := range d.Entries {
		if e.Day < d.From || e.Day > d.To {
			continue
		}
		i, known := index[e.Name]
		if !known {
			i = len(s.series)
			index[e.Name] = i
			s.series = append(s.series, series{name: e.Name, values: make([]int64, s.bars)})
		}
		one := &s.series[i]
		bar := e.Day - d.From
		one.sum, one.values[bar] = plus(one.sum, e.Value), plus(one.values[bar], e.Value)
	}
	slices.SortStableFunc(s.series, func(a, b series) int {
		return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.name, b.name))
	})
	s.fold()
	return s
}

// fold makes one series of all that are too many.
func (s *stack) fold() {
	if len(s.series) > mostSeries {
		others := series{name: fmt.Sprintf("%d others", len(s.series)-mostSeries+1), values: make([]int64, s.bars)}
		for _, one := range s.series[mostSeries-1:] {
			others.sum = plus(others.sum, one.sum)
			for bar, value := range one.values {
				others.values[bar] = plus(others.values[bar], value)
			}
		}
		s.series = append(s.series[:mostSeries-1:mostSeries-1], others)
	}
}

func date(day int) time.Time { return time.Unix(int64(day)*24*60*60, 0).UTC() }

// day returns the day of a bar as YYYY-MM-DD.
func (s stack) day(bar int) string { return date(s.from + bar).Format(time.DateOnly) }

// sumOf returns what all series have in a bar.
func (s stack) sumOf(bar int) (sum int64) {
	for _, one := range s.series {
		sum = plus(sum, one.values[bar])
	}
	return sum
}

// sum returns what all series have.
func (s stack) sum() (sum int64) {
	for _, one := range s.series {
		sum = plus(sum, one.sum)
	}
	return sum
}
