package prices

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"remit/money"
)

// Prices are whole multiples of 10^-scale USD, so that sums of them are exact.
const scale = 30

var (
	oneUSD      = power(scale)
	oneMicroUSD = power(scale - 6)
)

var (
	errNotANumber = errors.New("must be a number")
	errNegative   = errors.New("must not be negative")
	errTooLarge   = errors.New("must be at most 1 USD per token")
	errDecimals   = errors.New("must have at most 30 decimals")
	errThresholds = errors.New("must not be the seventeenth threshold of its price")
)

func power(of int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(of)), nil) }

// maxExponent saturates exponents, beyond every number of digits that a table can have.
const maxExponent = 1 << 40

// number reads the text of a JSON number as digits × 10^exponent, without zeros at either end of the digits.
func number(text string) (digits string, exponent int64, negative bool, err error) {
	if last := len(text) - 1; last < 0 || !isDigit(text[last]) || !json.Valid([]byte(text)) || text[0] != '-' && !isDigit(text[0]) {
		return "", 0, false, errNotANumber
	}
	text, negative = strings.CutPrefix(text, "-")
	mantissa, power := text, ""
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		mantissa, power = text[:e], strings.TrimPrefix(text[e+1:], "+")
		exponent, _ = strconv.ParseInt(power, 10, 64) // out of range: the nearest that is within
		exponent = max(min(exponent, maxExponent), -maxExponent)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= int64(len(fraction))
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	return trimmed, exponent + int64(len(digits)-len(trimmed)), negative, nil
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// parseCost reads the text of a JSON number as a price.
func parseCost(text string) (*big.Int, error) {
	digits, exponent, negative, err := number(text)
	switch {
	case err != nil:
		return nil, err
	case digits == "":
		return new(big.Int), nil
	case negative:
		return nil, errNegative
	case int64(len(digits))+exponent > 1: // 10 or more
		return nil, errTooLarge
	case exponent < -scale:
		return nil, errDecimals
	}
	cost, _ := new(big.Int).SetString(digits, 10)
	cost.Mul(cost, power(scale+int(exponent)))
	if cost.Cmp(oneUSD) > 0 {
		return nil, errTooLarge
	}
	return cost, nil
}

// parseLimit reads the text of a JSON number as a limit in tokens: an integer from 1 to MaxTokens. Everything else says nothing: 0.
func parseLimit(text string) int64 {
	digits, exponent, negative, err := number(text)
	if err != nil || digits == "" || negative || exponent < 0 || int64(len(digits))+exponent > 16 {
		return 0
	}
	limit, err := strconv.ParseInt(digits+strings.Repeat("0", int(exponent)), 10, 64)
	if err != nil || limit > MaxTokens {
		return 0
	}
	return limit
}

// roundedUp returns a sum of prices in micro-dollars.
func roundedUp(sum *big.Int) (money.MicroUSD, error) {
	whole, rest := new(big.Int).QuoRem(sum, oneMicroUSD, new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if whole.Cmp(big.NewInt(int64(money.Max))) > 0 {
		return 0, ErrUsage
	}
	return money.MicroUSD(whole.Int64()), nil
}
