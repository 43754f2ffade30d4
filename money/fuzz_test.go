package money

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"0", "-0", "-0.0e9", "12.3", "1E-6", "10e-7", "0.0000001", "-0.000001", "1000000000", "1000000000.000001",
		"999999999.999999", "999999999.9999999", "1e9", "1e+9", "1e10", "1e400", "1e-400", "0e99999999999", "100000000000000000000e-11",
		"0.0000000000000000000000001e26", "9007199254740993", "92233720368547758.08", "18446744073709.551617",
		"", "-1", "1000000001", "1.2345678", "123456789.12345678", "12.3", "0.30001", "1_000", "1 000",
		"01", "-", "-01", ".5", "5.", "1e", "1e+", "+1", "0x10", "1_0", "1 ", " 1", "NaN", "null", "\"5\"", "\u0663", "1\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, number []byte) {
		amount, err := Parse(number)
		requireExact(t, number, amount, err)
		if err != nil {
			return
		}
		written := amount.String()
		if again, err := Parse([]byte(written)); err != nil || again != amount {
			t.Errorf("%q: %d came back from %s as %d, %v", number, amount, written, again, err)
		}
		if !isShortest(written) {
			t.Errorf("%d is written %s", amount, written)
		}
	})
}

// requireExact compares Parse with the standard library: encoding/json decides what is a number, math/big its value.
func requireExact(t *testing.T, number []byte, amount MicroUSD, err error) {
	t.Helper()
	if !isJSONNumber(number) {
		if err != ErrNotANumber {
			t.Errorf("Parse(%q) = %d, %v; want ErrNotANumber", number, amount, err)
		}
		return
	}
	if exponentDigits(number) > 4 {
		return // math/big would write all the zeros out
	}
	exact, ok := new(big.Rat).SetString(string(number))
	if !ok {
		t.Fatalf("%q is a number to encoding/json and none to math/big", number)
	}
	exact.Mul(exact, big.NewRat(int64(USD), 1))
	inRange := exact.Sign() >= 0 && exact.Cmp(big.NewRat(int64(Max), 1)) <= 0
	switch {
	case inRange && exact.IsInt():
		if err != nil || exact.Num().Int64() != int64(amount) {
			t.Errorf("Parse(%q) = %d, %v; want %s", number, amount, err, exact.Num())
		}
	case inRange:
		if err != ErrDecimals {
			t.Errorf("Parse(%q) = %d, %v; want ErrDecimals", number, amount, err)
		}
	case exact.IsInt():
		if err != ErrRange {
			t.Errorf("Parse(%q) = %d, %v; want ErrRange", number, amount, err)
		}
	case !errors.Is(err, ErrRange) && !errors.Is(err, ErrDecimals): // it is wrong in both ways
		t.Errorf("Parse(%q) = %d, %v; want ErrRange or ErrDecimals", number, amount, err)
	}
}

func isJSONNumber(text []byte) bool {
	return len(text) > 0 && bytes.Trim(text, "+-.0123456789Ee") == nil && json.Valid(text)
}

func exponentDigits(number []byte) int {
	_, exponent, _ := bytes.Cut(bytes.ToLower(number), []byte("e"))
	return len(bytes.TrimLeft(exponent, "+-0"))
}

// isShortest reports whether a decimal has no redundant digit.
func isShortest(decimal string) bool {
	whole, fraction, found := bytes.Cut([]byte(decimal), []byte("."))
	return (len(whole) == 1 || whole[0] != '0') && len(fraction) <= decimals &&
		(!found || len(fraction) > 0 && fraction[len(fraction)-1] != '0')
}
