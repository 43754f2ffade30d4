package chart

import (
	"math"
	"strconv"
)

// measuredTicks is the approximate number of labelled ticks on a scale.
const measuredTicks = 6

// extent is a range of values.
type extent struct{ least, most float64 }

func nothing() extent { return extent{math.Inf(1), math.Inf(-1)} }

func (e extent) with(v float64) extent { return extent{min(e.least, v), max(e.most, v)} }
func (e extent) empty() bool           { return e.least > e.most }

// canDraw reports whether a scale can show a value.
func canDraw(v float64, log bool) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!log || v > 0)
}

// scale is an axis of measured values.
type scale struct {
	extent
	log   bool
	ticks []tick
}

// tick is a value on a scale. Some have no label.
type tick struct {
	at    float64
	label string
}

// newScale returns a scale that includes e, rounded to the next ticks if allowed.
func newScale(e extent, log, round bool) scale {
	if log {
		if e.least == e.most || round {
			e = extent{stepDown(e.least), stepUp(e.most)}
		}
		return scale{e, true, logTicks(e)}
	}
	if e.least == e.most {
		if e = (extent{min(e.least, 0), max(e.most, 0)}); e.least == e.most {
			e.most = 1
		}
	}
	step := stepUp(e.most/measuredTicks - e.least/measuredTicks)
	if round {
		e = extent{math.Floor(e.least/step) * step, math.Ceil(e.most/step) * step}
	}
	return scale{e, false, linearTicks(e, step)}
}

// part returns where a value is: 0 at the least, 1 at the greatest.
func (s scale) part(v float64) float64 {
	if s.log {
		return math.Log10(v/s.least) / math.Log10(s.most/s.least)
	}
	return (v - s.least) / (s.most - s.least)
}

// stepUp returns the least of 1, 2 and 5 times a power of ten that is at least v. v must be positive.
func stepUp(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if n*decade >= v {
			return n * decade
		}
	}
	return 10 * decade
}

// stepDown returns the greatest of 1, 2 and 5 times a power of ten that is at most v. v must be positive.
func stepDown(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{5, 2} {
		if n*decade <= v {
			return n * decade
		}
	}
	return decade
}

func linearTicks(e extent, step float64) []tick {
	var ticks []tick
	for k := math.Ceil(e.least / step); k*step <= e.most*(1+1e-9); k++ {
		ticks = append(ticks, tick{k * step, number(k * step)})
	}
	return ticks
}

// logTicks labels each power of ten, only some of them if there are many, and also 2 and 5 times these if there are few.
func logTicks(e extent) []tick {
	first, last := math.Floor(math.Log10(e.least)), math.Ceil(math.Log10(e.most))
	decades := last - first
	every := math.Ceil(decades / (1.5 * measuredTicks))
	var ticks []tick
	for k := first; k <= last; k++ {
		for n := 1.0; n < 10; n++ {
			v := n * math.Pow(10, k)
			if v < e.least*(1-1e-9) || v > e.most*(1+1e-9) {
				continue
			}
			label := ""
			if (n == 1 && math.Mod(k-first, every) == 0) || (decades <= 3 && (n == 2 || n == 5)) {
				label = number(v)
			}
			ticks = append(ticks, tick{v, label})
		}
	}
	return ticks
}

// number formats v with three digits, in thousands, millions or billions if it is large.
func number(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.size*(1-1e-9) && math.Abs(v) < 1e12 {
			return short(v/unit.size) + unit.name
		}
	}
	return short(v)
}

func short(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // cannot fail: FormatFloat wrote it
	return strconv.FormatFloat(rounded, 'g', -1, 64)
}
