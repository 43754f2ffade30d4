package redisstore

import (
	"strconv"
	"time"
)

// transactionEvents determine the status of a transaction that is stored as pending.
type transactionEvents struct {
	now     time.Time
	ended   string // when its session ended, as budgets/include/states.lua encodes it
	expires time.Time
}

// sessionGone stands for the end of a session that Redis no longer has. A session that expires is stored as long as its
// transactions, and one that ends is stored longer than the transactions that expired before. So the session ended while
// this transaction was pending.
const sessionGone = "gone"

// transactionStatus is the only rule for a transaction's status. It is the stored status, except that a pending transaction
// is expired after its expiry, and rolled back if its session ended before that.
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

// sessionEnd returns when the session ended, or the zero time if that is unknown.
func (e transactionEvents) sessionEnd() time.Time {
	if ms, err := strconv.ParseInt(e.ended, 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}
