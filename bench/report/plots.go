package main

import (
	"fmt"

	"remit/chart"
)

// draw returns the plots by file name.
func draw(r *run) (map[string][]byte, error) {
	var ratios, limits []chart.Bar
	for _, g := range goals {
		value := r.get(g.benchmark, g.metric)
		if g.atMost {
			limits = append(limits, chart.Bar{Name: g.what, Value: value / g.bound, Goal: 1})
		} else {
			ratios = append(ratios, chart.Bar{Name: g.what, Value: value, Goal: g.bound})
		}
	}
	var sessions, many, few []float64
	for _, n := range growthSteps {
		name := fmt.Sprintf("Growth/charge/sessions=%d", n)
		rate := r.get(name, "ops/s")
		sessions, many, few = append(sessions, float64(n)), append(many, rate), append(few, rate/r.get(name, "x-1000-sessions"))
	}
	if r.err != nil {
		return nil, r.err
	}
	plots := map[string][]byte{}
	for name, plot := range map[string]func() ([]byte, error){
		"ratios.svg": func() ([]byte, error) {
			return chart.Bars(chart.Labels{Title: "Speed, as a part of the floor's; the goal is at least", X: "ratio"}, ratios...)
		},
		"limits.svg": func() ([]byte, error) {
			return chart.Bars(chart.Labels{Title: "What is used of each limit; the goal is at most 1", X: "measured / limit"}, limits...)
		},
		"growth.svg": func() ([]byte, error) {
			return chart.Lines(chart.Labels{Title: "Charges, by the number of live sessions", X: "live sessions", Y: "charges per second", LogX: true},
				chart.Series{Name: "so many sessions", X: sessions, Y: many},
				chart.Series{Name: "1,000 sessions, in the same rounds", X: sessions, Y: few})
		},
	} {
		svg, err := plot()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		plots[name] = svg
	}
	return plots, nil
}
