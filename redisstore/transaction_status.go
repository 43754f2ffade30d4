package redisstore

import (
	"strconv"
	"time"
)

// transactionEvents is what the status of a transaction follows from that is stored as pending.
type transactionEvents struct {
	now     time.Time
	ended   string // when its session ended, as include/states.lua says it
	expires time.Time
}

// sessionGone stands for the end of a session that is gone. An expired session stays as long as its transactions, and an
// ended one longer than those that had expired before. So it was ended while this one was pending.
const sessionGone = "gone"

// transactionStatus is the one rule for a transaction's status: what is stored, except that a transaction that is still pending
// has expired once its time is up, and is rolled back if its session ends before.
func transactionStatus(stored Status, e transactionEvents) Status {
	switch {
	case stored != Pending:
		return stored
	case e.ended == "" && e.now.Before(e.expires):
		return Pending
	case e.ended == "" || !e.sessionEnd().Before(e.expires):
		return Expired
	default:
		return RolledBack
	}
}

// sessionEnd returns when the session ended, the zero time if that is not known.
func (e transactionEvents) sessionEnd() time.Time {
	if ms, err := strconv.ParseInt(e.ended, 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}
