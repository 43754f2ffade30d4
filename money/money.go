// Package money holds amounts of US dollars as whole micro-dollars, and reads and writes them as exact decimals.
// No amount ever passes through a floating-point number.
package money

import (
	"bytes"
	"errors"
	"strconv"
)

// MicroUSD is an amount in millionths of a US dollar, from 0 to Max.
type MicroUSD int64

const (
	// USD is one US dollar.
	USD MicroUSD = 1_000_000
	// Max is the largest amount, 1,000,000,000 USD. It lies below 2^53, so Redis's Lua keeps every amount exactly.
	Max = 1_000_000_000 * USD

	decimals  = 6
	maxDigits = 16 // of Max in micro-dollars
)

// The errors of Parse.
var (
	ErrNotANumber = errors.New("must be a number")
	ErrRange      = errors.New("must be from 0 to 1000000000")
	ErrDecimals   = errors.New("must have at most 6 decimals")
)

// Parse reads a JSON number (RFC 8259 §6) by its exact value: 5, 5.0 and 0.5e1 are the same amount, and -0 is 0.
// It returns ErrNotANumber, ErrRange or ErrDecimals for anything that is not an amount.
func Parse(number []byte) (MicroUSD, error) {
	n, ok := scan(number)
	if !ok {
		return 0, ErrNotANumber
	}
	var room [2 * maxDigits]byte
	digits, exponent := n.significant(room[:0])
	if len(digits) == 0 {
		return 0, nil
	}
	if n.negative {
		return 0, ErrRange
	}
	shift := exponent + decimals
	if len(digits)+shift > maxDigits {
		return 0, ErrRange
	}
	if shift < 0 {
		return 0, ErrDecimals
	}
	amount, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0, ErrRange
	}
	for range shift {
		amount *= 10
	}
	if MicroUSD(amount) > Max {
		return 0, ErrRange
	}
	return MicroUSD(amount), nil
}

// AppendTo appends the shortest exact decimal: 12.3, never 12.300000.
func (m MicroUSD) AppendTo(text []byte) []byte {
	if m < 0 {
		text, m = append(text, '-'), -m
	}
	text = strconv.AppendInt(text, int64(m/USD), 10)
	fraction := m % USD
	if fraction == 0 {
		return text
	}
	text = append(text, '.')
	for unit := USD / 10; fraction > 0; unit /= 10 {
		text = append(text, byte('0'+fraction/unit))
		fraction %= unit
	}
	return text
}

// String returns the amount as AppendTo writes it.
func (m MicroUSD) String() string { return string(m.AppendTo(nil)) }

// MarshalJSON writes the amount as a JSON number.
func (m MicroUSD) MarshalJSON() ([]byte, error) { return m.AppendTo(nil), nil }

// UnmarshalJSON reads the amount as Parse does.
func (m *MicroUSD) UnmarshalJSON(number []byte) error {
	amount, err := Parse(number)
	if err != nil {
		return err
	}
	*m = amount
	return nil
}

// UnmarshalText reads the amount as Parse does, for flags and the environment.
func (m *MicroUSD) UnmarshalText(number []byte) error { return m.UnmarshalJSON(number) }

// decimal is a scanned JSON number: whole and fraction digits, and the exponent.
type decimal struct {
	negative        bool
	whole, fraction []byte
	exponent        int
}

// maxExponent saturates exponents. It exceeds the number of digits that a request can hold.
const maxExponent = 1 << 24

func scan(number []byte) (decimal, bool) {
	var n decimal
	rest := number
	if len(rest) > 0 && rest[0] == '-' {
		n.negative, rest = true, rest[1:]
	}
	n.whole, rest = leadingDigits(rest)
	if len(n.whole) == 0 || (n.whole[0] == '0' && len(n.whole) > 1) {
		return n, false
	}
	if len(rest) > 0 && rest[0] == '.' {
		n.fraction, rest = leadingDigits(rest[1:])
		if len(n.fraction) == 0 {
			return n, false
		}
	}
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		var ok bool
		if n.exponent, rest, ok = scanExponent(rest[1:]); !ok {
			return n, false
		}
	}
	return n, len(rest) == 0
}

func scanExponent(text []byte) (exponent int, rest []byte, ok bool) {
	sign := 1
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	digits, rest := leadingDigits(text)
	for _, d := range digits {
		exponent = min(exponent*10+int(d-'0'), maxExponent)
	}
	return sign * exponent, rest, len(digits) > 0
}

func leadingDigits(text []byte) (digits, rest []byte) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	return text[:end], text[end:]
}

// significant returns the number as digits × 10^exponent, without leading or trailing zeros. It appends the digits to room.
func (n decimal) significant(room []byte) (digits []byte, exponent int) {
	digits = append(append(room, n.whole...), n.fraction...)
	exponent = n.exponent - len(n.fraction)
	trimmed := bytes.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	return bytes.TrimLeft(trimmed, "0"), exponent
}
