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

// sessionGone stands for the end of a session that is not kept any more. One that expires is kept for as long as its
// transactions, and one that ends for longer than those that had expired before; so it was ended while this one was
// pending.
const sessionGone = "gone"

// transactionStatus is the one rule for a transaction's status: what is stored, but for one that is pending still when
// its time is up, which has expired, or when its session ends before, which rolls it back.
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
