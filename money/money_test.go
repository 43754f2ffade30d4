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

func TestParseRefusesOtherTexts(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]error{
		"":                                ErrNotANumber,
		"null":                            ErrNotANumber,
		`"5"`:                             ErrNotANumber,
		"+1":                              ErrNotANumber,
		"01":                              ErrNotANumber,
		".5":                              ErrNotANumber,
		"5.":                              ErrNotANumber,
		"1e":                              ErrNotANumber,
		"1e+":                             ErrNotANumber,
		"0x10":                            ErrNotANumber,
		"1_000":                           ErrNotANumber,
		"NaN":                             ErrNotANumber,
		"1 ":                              ErrNotANumber,
		"٣":                               ErrNotANumber,
		"-1":                              ErrRange,
		"-0.000001":                       ErrRange,
		"1000000000.000001":               ErrRange,
		"1000000001":                      ErrRange,
		"9007199254740993":                ErrRange,
		"1e400":                           ErrRange,
		"1e99999999999999":                ErrRange,
		"0.0000001":                       ErrDecimals,
		"1.2345678":                       ErrDecimals,
		"1e-99999999999999":               ErrDecimals,
		"123456789.12345678":              ErrDecimals,
		"12345678901234567890.1234567890": ErrRange,
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

func TestTheSameDigitsComeBack(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"0", "0.000001", "12.3", "0.1", "0.30001", "100", "999999999.999999", "1000000000"} {
		amount, err := Parse([]byte(number))
		if err != nil || amount.String() != number {
			t.Errorf("%s came back as %s, %v", number, amount, err)
		}
	}
}
