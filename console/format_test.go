package console

import (
	"testing"
	"time"

	"remit/money"
)

func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	for amount, want := range map[money.MicroUSD]string{
		0: "$0.00", 1: "$0.000001", 1_500_000: "$1.50", 1_234_567_890_123: "$1,234,567.890123", -30_000: "−$0.03", money.USD * 1000: "$1,000.00",
		12_345_600: "$12.3456", 9_007_199_254_740_991: "$9,007,199,254.740991",
	} {
		if got := usd(amount); got != want {
			t.Errorf("%d is %s, want %s", amount, got, want)
		}
	}
}

func TestAReportsAmountsAreReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]amount{"0": 0, "1.25": 1_250_000, "-0.000001": -1, "9007199254.740993": 9_007_199_254_740_993} {
		var got amount
		if err := got.UnmarshalJSON([]byte(text)); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "1.1234567", "1e6", `"1"`} {
		var got amount
		if got.UnmarshalJSON([]byte(text)) == nil {
			t.Errorf("%s is read as %d", text, got)
		}
	}
}

func TestTimesAreInUTCForWhoHasNoScript(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 23, 59, 58, 123e6, time.FixedZone("east", 3600))
	want := stamp{"2026-11-22T22:59:58.123Z", "2026-11-22 22:59:58.123 UTC", "2026-11-22 22:59 UTC"}
	if got := stampOf(at); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
	if got := stampOf(&at); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
	for _, none := range []any{time.Time{}, (*time.Time)(nil), "x"} {
		if stampOf(none) != nil {
			t.Errorf("%v has a time", none)
		}
	}
}
