package fleet

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"remit/internal/chart"
)

const (
	shownOperations = 7   // in the percentile chart
	fewAnswers      = 100 // fewer answers than this have no useful percentiles
)

// drawCharts draws the charts of a run that have data.
func drawCharts(r result) ([]template.HTML, error) {
	stats := r.fleet.stats
	var drawn []template.HTML
	add := func(svg []byte, err error) error {
		drawn = append(drawn, template.HTML(svg)) // package chart escapes all text
		return err
	}
	if throughput := stats.throughput(); len(throughput) > 0 {
		l := chart.Labels{Title: "Throughput over time: arrivals and answers", X: "seconds", Y: "per second"}
		if err := add(chart.Lines(l, append(throughput, stats.stormLine(0, throughput)...)...)); err != nil {
			return nil, err
		}
		l = chart.Labels{Title: "Latency over time, since the action was due", X: "seconds", Y: "milliseconds", LogY: true}
		latencies := stats.latenciesOverTime()
		if err := add(chart.Lines(l, append(latencies, stats.stormLine(math.Inf(1), latencies)...)...)); err != nil {
			return nil, err
		}
	}
	if distribution := stats.distribution(); len(distribution) > 0 {
		l := chart.Labels{
			Title: "Latency by percentile", X: "1 / (1 - p): 10 is p90, 100 is p99, 1k is p99.9", Y: "milliseconds",
			LogX: true, LogY: true,
		}
		if err := add(chart.Lines(l, distribution...)); err != nil {
			return nil, err
		}
	}
	return drawn, nil
}

// throughput returns arrivals, answers, refusals and errors over time; nothing before a run.
func (s *stats) throughput() []chart.Series {
	l := &s.timeline
	offered, answered := chart.Series{Name: "offered"}, chart.Series{Name: "answered"}
	refusals, errors := chart.Series{Name: "refused"}, chart.Series{Name: "errors"}
	each := l.width.Seconds()
	add := func(to *chart.Series, i int, n int64) {
		to.X = append(to.X, float64(i)*each)
		to.Y = append(to.Y, float64(n)/each)
	}
	for i, at := range l.slices {
		n := l.offered(i)
		if n == 0 && i > 0 && i == len(l.slices)-1 {
			break // an incomplete last slice would look like a fall
		}
		if n > 0 {
			add(&offered, i, n)
		}
		add(&answered, i, at.done+at.refused)
		add(&refusals, i, at.refused)
		add(&errors, i, at.errors)
	}
	if len(l.slices) == 0 {
		return nil
	}
	all := []chart.Series{answered, refusals, errors}
	if l.schedule.span > 0 { // in closed loop no action has a set time
		all = slices.Insert(all, 0, offered)
	}
	return all
}

func (s *stats) latenciesOverTime() []chart.Series {
	p50, p99, most := chart.Series{Name: "p50"}, chart.Series{Name: "p99"}, chart.Series{Name: "max"}
	for i, at := range s.timeline.slices {
		for _, one := range []struct {
			to      *chart.Series
			percent float64
		}{{&p50, 50}, {&p99, 99}, {&most, 100}} {
			one.to.X = append(one.to.X, float64(i)*s.timeline.width.Seconds())
			latency := math.NaN() // a gap: nothing was due
			if at.latencies != nil {
				latency = milliseconds(quantile(at.latencies, one.percent))
			}
			one.to.Y = append(one.to.Y, latency)
		}
	}
	return []chart.Series{p50, p99, most}
}

// stormLine returns a vertical line at the time when all tokens expired, if they did: from the given height, or the minimum
// of the series if that is lower, to their maximum.
func (s *stats) stormLine(from float64, series []chart.Series) []chart.Series {
	if s.stormAt.IsZero() {
		return nil
	}
	to := from
	for _, one := range series {
		for _, y := range one.Y {
			if !math.IsNaN(y) {
				from, to = min(from, y), map[bool]float64{true: y, false: max(to, y)}[math.IsInf(to, 1)]
			}
		}
	}
	at := s.stormAt.Sub(s.timeline.start).Seconds()
	return []chart.Series{{Name: "all tokens expire", X: []float64{at, at}, Y: []float64{from, to}}}
}

// distribution returns the latency by percentile of the most frequent operations.
func (s *stats) distribution() []chart.Series {
	var shown []operation
	for op := range operations {
		if s.during[op].TotalCount() >= fewAnswers {
			shown = append(shown, op)
		}
	}
	slices.SortStableFunc(shown, func(a, b operation) int {
		return cmp.Compare(s.during[b].TotalCount(), s.during[a].TotalCount())
	})
	var list []chart.Series
	for _, op := range shown[:min(len(shown), shownOperations)] {
		list = append(list, percentilesOf(op.String(), s.during[op]))
	}
	return list
}

// percentilesOf returns the latency that one answer in N exceeds, for N up to the number of answers.
func percentilesOf(name string, h *hdrhistogram.Histogram) chart.Series {
	const perDecade = 16
	s := chart.Series{Name: name}
	for i := 0; ; i++ {
		parts := math.Pow(10, float64(i)/perDecade)
		if parts > float64(h.TotalCount()) {
			return s
		}
		s.X = append(s.X, parts)
		s.Y = append(s.Y, milliseconds(quantile(h, 100*(1-1/parts))))
	}
}

// milliseconds returns d for an axis, at least the microsecond that the histograms resolve.
func milliseconds(d time.Duration) float64 {
	return float64(max(d, time.Microsecond)) / float64(time.Millisecond)
}
