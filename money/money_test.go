package money

import (
	"errors"
	"strings"
	"testing"
)

func TestParseReadsExactDecimals(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]MicroUSD{
		"0":                         0,
		"-0":                        0,
		"0e999999999999":            0,
		"0.000001":                  1,
		"12.3":                      12_300_000,
		"0.1":                       100_000,
		"1.1000000":                 1_100_000,
		"1e2":                       100 * USD,
		"0.5e1":                     5 * USD,
		"1E-6":                      1,
		"10e-7":                     1,
		"999999999.999999":          999_999_999_999_999,
		"1000000000":                Max,
		"1000000000.000000":         Max,
		"1e9":                       Max,
		"100000000000000000000e-11": Max,
	} {
		if got, err := Parse([]byte(number)); err != nil || got != want {
			t.Errorf("Parse(%s) = %d, %v; want %d", number, got, err, want)
		}
	}
}

// FuzzParse compares all other texts with math/big.
func TestParseRefusesLongExponents(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]error{
		"1e99999999999999": ErrRange, "1e-99999999999999": ErrDecimals, "12345678901234567890.1234567890": ErrRange,
	} {
		if got, err := Parse([]byte(number)); !errors.Is(err, want) {
			t.Errorf("Parse(%s) = %d, %v; want %v", number, got, err, want)
		}
	}
}

func TestParseIsFastWithManyDigits(t *testing.T) {
	t.Parallel()
	long := "0." + strings.Repeat("0", 200_000) + "1e200000"
	if got, err := Parse([]byte(long)); err != nil || got != 100_000 {
		t.Errorf("Parse = %d, %v; want 100000", got, err)
	}
}
