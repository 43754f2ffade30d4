package main

import (
	"fmt"
	"strconv"
	"strings"
)

// micros is an amount in micro-USD: one millionth of a dollar. Amounts are integers, because checks that round would miss
// small differences.
type micros int64

const (
	microsPerUSD   = 1_000_000
	usdDecimals    = 6
	maxWholeDigits = 12 // keeps every amount below 10¹⁸ micro-USD, inside an int64
)

// parseMicros reads a plain decimal such as 12, 12.3 or 0.000001, exactly. It refuses signs, exponents, a bare point,
// leading zeros and more than six decimals, because the service promises not to write these.
func parseMicros(text string) (micros, error) {
	whole, fraction, point := strings.Cut(text, ".")
	switch {
	case !onlyDigits(whole) || len(whole) > maxWholeDigits || (len(whole) > 1 && whole[0] == '0'),
		point && (!onlyDigits(fraction) || len(fraction) > usdDecimals):
		return 0, fmt.Errorf("%.40q is not an exact amount in USD", text)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", usdDecimals-len(fraction)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not an exact amount in USD: %w", text, err)
	}
	return micros(n), nil
}

// onlyDigits reports whether s is one or more ASCII digits.
func onlyDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// String returns the shortest exact decimal in USD, as requests contain it.
func (m micros) String() string {
	if m < 0 {
		return "-" + (-m).String()
	}
	text := strconv.FormatInt(int64(m/microsPerUSD), 10)
	if m%microsPerUSD == 0 {
		return text
	}
	return text + "." + strings.TrimRight(fmt.Sprintf("%06d", int64(m%microsPerUSD)), "0")
}

// UnmarshalJSON reads a JSON number exactly. It rejects strings, because the API description says number.
func (m *micros) UnmarshalJSON(text []byte) error {
	n, err := parseMicros(string(text))
	if err != nil {
		return err
	}
	*m = n
	return nil
}
