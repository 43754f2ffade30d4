package console

import (
	"time"

	"github.com/goccy/go-json"
	"remit/money"
)

// leases are the leases of an organization that are open, as events tell: the API has no list of them.
type leases struct {
	open    map[string]lease
	settled map[string]struct{} // those that were settled before their grant was read
	isRead  bool                // all events that are kept have been read
	since   time.Time           // from then on no lease is open that was granted before the oldest event that is kept
}

// lease is what one holds until it is settled or expires.
type lease struct {
	value   money.MicroUSD
	expires time.Time
}

const (
	// mostLeases bounds those that are counted.
	mostLeases = 20_000
	// longestLease is the longest that the API grants.
	longestLease = time.Hour
)

func (l *leases) grant(e eventRow, now time.Time) {
	if _, isSettled := l.settled[e.LeaseID]; isSettled {
		delete(l.settled, e.LeaseID)
		return
	}
	var data struct {
		Value   amount    `json:"value_leased_usd"`
		Expires time.Time `json:"expires_at"`
	}
	if json.Unmarshal(e.Data, &data) != nil || !now.Before(data.Expires) {
		return
	}
	if len(l.open) >= mostLeases {
		if l.sum(now); len(l.open) >= mostLeases {
			l.miss(now)
			return
		}
	}
	if l.open == nil {
		l.open = map[string]lease{}
	}
	l.open[e.LeaseID] = lease{data.Value.MicroUSD(), data.Expires}
}

// settle forgets a lease that was settled or has expired.
func (l *leases) settle(e eventRow, now time.Time) {
	if _, isOpen := l.open[e.LeaseID]; isOpen || l.isRead {
		delete(l.open, e.LeaseID)
		return
	}
	if len(l.settled) >= mostLeases {
		l.miss(now)
		return
	}
	if l.settled == nil {
		l.settled = map[string]struct{}{}
	}
	l.settled[e.LeaseID] = struct{}{}
}

// miss notes that a lease is not counted right.
func (l *leases) miss(now time.Time) { l.knowFrom(now.Add(longestLease)) }

// knowFrom notes that all open leases are known only from then on.
func (l *leases) knowFrom(since time.Time) {
	if since.After(l.since) {
		l.since = since
	}
}

// read is called when all events that are kept have been read.
func (l *leases) read() { l.isRead, l.settled = true, nil }

// sum returns what is leased, and whether that is all.
func (l *leases) sum(now time.Time) (sum money.MicroUSD, isAll bool) {
	for id, one := range l.open {
		if !now.Before(one.expires) {
			delete(l.open, id)
			continue
		}
		sum += one.value
	}
	return sum, l.isRead && !now.Before(l.since)
}
