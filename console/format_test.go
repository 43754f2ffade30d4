package console

import (
	"testing"
	"time"
)

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
	wantEqual(t, "a time", stampOf(at), &want)
	wantEqual(t, "a pointer to one", stampOf(&at), &want)
	for _, none := range []any{time.Time{}, (*time.Time)(nil), "x"} {
		if stampOf(none) != nil {
			t.Errorf("%v has a time", none)
		}
	}
}
