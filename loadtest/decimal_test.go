package main

import "testing"

func TestParseMicros(t *testing.T) {
	for text, want := range map[string]micros{
		"0":                   0,
		"0.0":                 0,
		"0.000001":            1,
		"0.1":                 100_000,
		"12.3":                12_300_000,
		"12.300000":           12_300_000,
		"999999999.999999":    999_999_999_999_999,
		"1000000000":          1_000_000_000_000_000,
		"999999999999.999999": 999_999_999_999_999_999,
	} {
		if got, err := parseMicros(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseMicrosRefuses(t *testing.T) {
	for _, text := range []string{
		"", ".", "1.", ".5", "-1", "+1", "01", "00", "1e3", "1E3", "1.0000000", "1.1234567", "1,5", " 1", "1 ", "1.2.3",
		"1000000000000", "NaN", "null", `"1"`, "0x1", "١",
	} {
		if got, err := parseMicros(text); err == nil {
			t.Errorf("%q: read as %d", text, got)
		}
	}
}

func TestMicrosText(t *testing.T) {
	for amount, want := range map[micros]string{
		0: "0", 1: "0.000001", 100_000: "0.1", 12_300_000: "12.3", 5_000_000: "5", -1_500_000: "-1.5",
		999_999_999_999_999: "999999999.999999",
	} {
		if got := amount.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(amount), got, want)
		}
	}
}

// Parsing what the fleet writes returns the same amount.
func FuzzMicrosRoundTrip(f *testing.F) {
	f.Add(int64(0))
	f.Add(int64(12_300_000))
	f.Fuzz(func(t *testing.T, n int64) {
		amount := micros(n & (1<<59 - 1))
		if got, err := parseMicros(amount.String()); err != nil || got != amount {
			t.Errorf("%s: %d, %v; want %d", amount, got, err, int64(amount))
		}
	})
}
