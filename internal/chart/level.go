package chart

import (
	"math"
	"math/bits"
)

// Level says how near its limit something is. Web pages and the command line colour their bars by it.
type Level string

const (
	// Free is below 80 % of the limit.
	Free Level = ""
	// Near is from 80 % on, where the service warns too. Its bars are yellow.
	Near Level = "near"
	// Full is from 100 % on. Its bars are red.
	Full Level = "full"
)

const (
	nearPercent = 80
	fullPercent = 100
)

// LevelOf returns the level of a share in percent.
func LevelOf(share int64) Level {
	switch {
	case share >= fullPercent:
		return Full
	case share >= nearPercent:
		return Near
	}
	return Free
}

// class returns the further class of a bar of this level.
func (l Level) class() string {
	if l == Free {
		return ""
	}
	return " chart-" + string(l)
}

// Percent returns how much of a limit is taken, in whole percent, rounded down; 100 for a limit of 0.
func Percent(taken, limit int64) int64 {
	if limit <= 0 {
		return fullPercent
	}
	return Scale(max(taken, 0), fullPercent, limit)
}

// Scale returns part × n / whole, rounded down and saturated, for part and n ≥ 0 and whole ≥ 1. The product may exceed an
// int64: a year in nanoseconds times 300 does.
func Scale(part, n, whole int64) int64 {
	high, low := bits.Mul64(uint64(part), uint64(n))
	if high >= uint64(whole) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return int64(min(quotient, math.MaxInt64))
}
