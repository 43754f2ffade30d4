package chart

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

const (
	perDollar = 1_000_000
	decimals  = 6 // of a dollar
	cents     = 2 // the decimals that an amount always has
)

// Dollars writes an amount of micro-dollars exactly, with 2 to 6 decimals: $1,234.50, $0.000001, −$0.03.
func Dollars(micro int64) string {
	return dollars(micro, cents)
}

// dollars writes an amount exactly, with at least this many decimals.
func dollars(micro int64, least int) string {
	sign, amount := signed(micro)
	fraction := strconv.FormatUint(amount%perDollar+perDollar, 10)[1:]
	shown := max(least, len(strings.TrimRight(fraction, "0")))
	text := sign + "$" + thousands(amount/perDollar)
	if shown == 0 {
		return text
	}
	return text + "." + fraction[:shown]
}

// grouped writes a whole number with commas.
func grouped(n int64) string {
	sign, size := signed(n)
	return sign + thousands(size)
}

func signed(n int64) (sign string, size uint64) {
	if n < 0 {
		return "−", uint64(-(n + 1)) + 1 // -n overflows for the least
	}
	return "", uint64(n)
}

func thousands(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var text strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			text.WriteByte(',')
		}
		text.WriteRune(digit)
	}
	return text.String()
}

// plus adds, and stops at the largest and the least number.
func plus(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// part returns value/of of whole, rounded down. It is 0 below 0 and whole above of.
func part(value, of uint64, whole uint64) uint64 {
	if value >= of {
		return whole
	}
	high, low := bits.Mul64(value, whole)
	quotient, _ := bits.Div64(high, low, of) // high < of, because value < of
	return quotient
}

// percent writes value/of as a percentage with two decimals: 43.21%.
func percent(value, of int64) string {
	return hundredths(part(natural(value), natural(of), 100_00)) + "%"
}

// hundredths writes n/100, as short as possible.
func hundredths(n uint64) string {
	text := strconv.FormatUint(n/100, 10)
	if n%100 == 0 {
		return text
	}
	return strings.TrimRight(text+"."+strconv.FormatUint(n%100+100, 10)[1:], "0")
}

func natural(n int64) uint64 { return uint64(max(n, 0)) }
