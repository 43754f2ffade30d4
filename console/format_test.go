package console

import (
	"testing"
	"time"
)

func TestAReportsAmountsAreReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]amount{"0": 0, "1.25": 1_250_000, "-0.000001": -1, "9007199254.740993": 9_007_199_254_740_993} {
		var got amount
		must(0, got.UnmarshalJSON([]byte(text)))(t)
		wantEqual(t, text, got, want)
	}
	for _, text := range []string{"", "x", "1.1234567", "1e6", `"1"`} {
		var got amount
		wantEqual(t, text+" is refused", got.UnmarshalJSON([]byte(text)) != nil, true)
	}
}

func TestTimesAreInUTCForWhoHasNoScript(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 23, 59, 58, 123e6, time.FixedZone("east", 3600))
	want := stamp{"2026-11-22T22:59:58.123Z", "2026-11-22 22:59:58.123 UTC", "2026-11-22 22:59 UTC"}
	wantEqual(t, "a time", stampOf(at), &want)
	wantEqual(t, "a pointer to one", stampOf(&at), &want)
	for _, none := range []any{time.Time{}, (*time.Time)(nil), "x"} {
		wantEqual(t, "what is no time", stampOf(none), nil)
	}
}
