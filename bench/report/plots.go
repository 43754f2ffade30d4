package main

import (
	"fmt"

	"remit/internal/chart"
)

// draw returns the plots by file name.
func draw(r *run) (map[string][]byte, error) {
	ratios, limits := goalBars(r)
	times, growth := processorBars(r), growthSeries(r)
	if r.err != nil {
		return nil, r.err
	}
	plots := map[string][]byte{}
	var failed error
	add := func(name string, svg []byte, err error) {
		if plots[name] = svg; err != nil {
			failed = fmt.Errorf("%s: %w", name, err)
		}
	}
	svg, err := chart.Bars(chart.Labels{Title: "Speed, as a part of the floor's; the goal is at least", X: "ratio"}, ratios...)
	add("ratios.svg", svg, err)
	svg, err = chart.Bars(chart.Labels{Title: "What is used of each limit; the goal is at most 1", X: "measured / limit"}, limits...)
	add("limits.svg", svg, err)
	svg, err = chart.Bars(chart.Labels{Title: "Processor time of client, service and Redis", X: "µs per request, or per charge of a batch"}, times...)
	add("processor.svg", svg, err)
	svg, err = chart.Lines(chart.Labels{Title: "Charges, by the number of live sessions", X: "live sessions", Y: "charges per second", LogX: true}, growth...)
	add("growth.svg", svg, err)
	return plots, failed
}

// goalBars returns the goals that are ratios, and those that are limits as a part of the limit. Others have no common scale.
func goalBars(r *run) (ratios, limits []chart.Bar) {
	for _, g := range goals {
		value := g.value(r)
		switch {
		case g.atMost && g.bound > 0:
			limits = append(limits, chart.Bar{Name: g.what, Value: value / g.bound, Goal: 1})
		case !g.atMost && g.unit == "":
			ratios = append(ratios, chart.Bar{Name: g.what, Value: value, Goal: g.bound})
		}
	}
	return ratios, limits
}

func processorBars(r *run) []chart.Bar {
	bars := []chart.Bar{{Name: "bare", Value: r.bareUsage(oneCharge).all()}}
	for _, path := range r.pathsAndPeers() {
		bars = append(bars, chart.Bar{Name: path.what, Value: r.usage(path.benchmark).all()})
	}
	return bars
}

func growthSeries(r *run) []chart.Series {
	var sessions, many, few []float64
	for _, n := range growthSteps {
		name := fmt.Sprintf("Growth/charge/sessions=%d", n)
		rate := r.get(name, "ops/s")
		sessions, many, few = append(sessions, float64(n)), append(many, rate), append(few, rate/r.get(name, "x-1000-sessions"))
	}
	return []chart.Series{
		{Name: "so many sessions", X: sessions, Y: many},
		{Name: "1,000 sessions, in the same rounds", X: sessions, Y: few},
	}
}
