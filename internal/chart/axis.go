package chart

import (
	"math"
	"unicode/utf8"
)

const ticksWanted = 5 // at most, from zero to the greatest value

// axis has ticks at the multiples of step from -below to above, which include all values.
type axis struct {
	unit               Unit
	step, below, above int64 // below and above are multiples of step, and not negative
}

// newAxis returns the axis with the fewest round steps for values from least to most. It always includes zero.
func newAxis(unit Unit, least, most int64) axis {
	least, most = max(min(least, 0), -limit), min(max(most, 0), limit)
	if least == 0 && most == 0 { // one step, of a whole
		most = 1
		if unit == MicroUSD {
			most = perDollar
		}
		return axis{unit: unit, step: most, above: most}
	}
	step := roundStep(plus(most, -least))
	return axis{unit, step, upTo(-least, step), upTo(most, step)}
}

// limit keeps the sums of an axis and its ticks within 64 bits.
const limit = math.MaxInt64 / 16

// roundStep returns the least of 1, 2 and 5 times a power of ten of which ticksWanted reach span.
func roundStep(span int64) int64 {
	for decade := int64(1); ; decade *= 10 {
		for _, n := range [...]int64{1, 2, 5} {
			if n*decade*ticksWanted >= span { // it is by 5e17, since span is at most 2*limit
				return n * decade
			}
		}
	}
}

// upTo returns the least multiple of step that is at least n.
func upTo(n, step int64) int64 { return (n + step - 1) / step * step }

// ticks returns the values that have a label, from the least.
func (a axis) ticks() []int64 {
	var all []int64
	for tick := -a.below; tick <= a.above; tick += a.step {
		all = append(all, tick)
	}
	return all
}

// label writes a tick exactly. The labels of an axis have the same number of decimals.
func (a axis) label(tick int64) string {
	if a.unit == Count {
		return shortened(tick, "")
	}
	if a.step%perDollar == 0 {
		sign, size := signed(tick)
		return sign + shortened(int64(size/perDollar), "$")
	}
	return dollars(tick, decimalsOf(a.step))
}

// longestLabel returns how many characters the longest label has.
func (a axis) longestLabel() (length int) {
	for _, tick := range a.ticks() {
		length = max(length, utf8.RuneCountInString(a.label(tick)))
	}
	return length
}

// decimalsOf returns how many decimals an axis with steps below a dollar needs, at least those of cents.
func decimalsOf(step int64) int {
	needed := decimals
	for ; step%10 == 0; step /= 10 {
		needed--
	}
	return max(needed, cents)
}

// shortened writes large round numbers in thousands, millions and so on, if that is exact: 1.5M.
func shortened(n int64, symbol string) string {
	sign, size := signed(n)
	for _, unit := range [...]struct {
		size uint64
		name string
	}{{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}} {
		if size >= unit.size && size%(unit.size/10) == 0 {
			return sign + symbol + hundredths(size/(unit.size/100)) + unit.name
		}
	}
	return sign + symbol + thousands(size)
}

// y returns how far below the top of a plot of this height a value lies, in hundredths of a pixel.
func (a axis) y(value int64, height uint64) uint64 {
	from := natural(plus(a.above, -min(max(value, -a.below), a.above)))
	return part(from, natural(a.above+a.below), height*100)
}
