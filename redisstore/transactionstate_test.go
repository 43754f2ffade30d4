package redisstore

import (
	"testing"
	"time"
)

func TestATransactionsStatusIsWhatCameFirst(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		stored Status
		now    int64 // in ms; it expires at 100
		ended  string
		want   Status
	}{
		{"in its time", Pending, 99, "", Pending},
		{"at its expiry", Pending, 100, "", Expired},
		{"after it", Pending, 101, "", Expired},
		{"its session ended", Pending, 60, "50", RolledBack},
		{"its session ended, read after its expiry", Pending, 200, "50", RolledBack},
		{"its session ended at the last moment", Pending, 99, "99", RolledBack},
		{"its session ended at its expiry", Pending, 100, "100", Expired},
		{"its session ended after it", Pending, 200, "150", Expired},
		{"its session ended and is gone", Pending, 60, sessionGone, RolledBack},
		{"its session ended and is gone, read after its expiry", Pending, 200, sessionGone, RolledBack},
		{"committed", Committed, 60, "", Committed},
		{"committed, read after its expiry", Committed, 200, "", Committed},
		{"committed, then its session ended", Committed, 60, "50", Committed},
		{"committed, and its session is gone", Committed, 200, sessionGone, Committed},
		{"rolled back", RolledBack, 60, "", RolledBack},
		{"rolled back, read after its expiry", RolledBack, 200, "", RolledBack},
		{"rolled back, then its session ended after its expiry", RolledBack, 200, "150", RolledBack},
	} {
		events := transactionEvents{now: time.UnixMilli(test.now), ended: test.ended, expires: time.UnixMilli(100)}
		if got := transactionStatus(test.stored, events); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestTheStatusOfATransactionWhoseHoldIsSpentFollowsFromItsTimeAlone(t *testing.T) {
	t.Parallel()
	for _, ended := range []string{"", "50", "150", sessionGone} {
		for now, want := range map[int64]Status{60: Pending, 99: Pending, 100: Committed, 200: Committed} {
			events := transactionEvents{now: time.UnixMilli(now), ended: ended, expires: time.UnixMilli(100), spent: true}
			if got := transactionStatus(Pending, events); got != want {
				t.Errorf("at %d, its session ended at %q: %s, want %s", now, ended, got, want)
			}
		}
	}
}

func TestTheEndOfASessionIsATimeOrUnknown(t *testing.T) {
	t.Parallel()
	for ended, want := range map[string]time.Time{"": {}, sessionGone: {}, "1700000000123": time.UnixMilli(1_700_000_000_123)} {
		if got := (transactionEvents{ended: ended}).sessionEnd(); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", ended, got, want)
		}
	}
}
