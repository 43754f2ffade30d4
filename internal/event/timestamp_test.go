package event

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestATimestampIsWrittenInItsLayout(t *testing.T) {
	t.Parallel()
	times := []time.Time{{}, time.UnixMilli(0), time.UnixMilli(-1), time.UnixMilli(253402300799999), time.UnixMilli(253402300800000),
		time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(0, 12, 31, 23, 59, 59, 1e6, time.FixedZone("", -3600)), time.Unix(0, 999_999_999)}
	for range 10_000 {
		times = append(times, time.UnixMilli(rand.Int64N(253402300800000)))
	}
	for _, at := range times {
		if got, want := string(Timestamp(at).AppendTo(nil)), at.UTC().Format(timestampLayout); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
