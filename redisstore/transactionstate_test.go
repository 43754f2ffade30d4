package redisstore

import (
	"fmt"
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
		{"its session ended, read after its expiry", Pending, 200, "50", RolledBack},
		{"its session ended at the last moment", Pending, 99, "99", RolledBack},
		{"its session ended at its expiry", Pending, 100, "100", Expired},
		{"its session ended and is gone, read after its expiry", Pending, 200, sessionGone, RolledBack},
		{"committed, then its session ended", Committed, 60, "50", Committed},
		{"rolled back, then its session ended after its expiry", RolledBack, 200, "150", RolledBack},
	} {
		events := transactionEvents{now: time.UnixMilli(test.now), ended: test.ended, expires: time.UnixMilli(100)}
		wantEqual(t, test.name, transactionStatus(test.stored, events), test.want)
	}
}

func TestTheStatusOfATransactionWhoseHoldIsSpentFollowsFromItsTimeAlone(t *testing.T) {
	t.Parallel()
	for _, ended := range []string{"", "50", "150", sessionGone} {
		for now, want := range map[int64]Status{60: Pending, 99: Pending, 100: Committed, 200: Committed} {
			events := transactionEvents{now: time.UnixMilli(now), ended: ended, expires: time.UnixMilli(100), spent: true}
			wantEqual(t, fmt.Sprintf("at %d, its session ended at %q", now, ended), transactionStatus(Pending, events), want)
		}
	}
}
