package console

import (
	"time"

	"github.com/goccy/go-json"
	"remit/money"
)

// leases are the leases of an organization that are open, as events tell: the API has no list of them.
type leases struct {
	open  map[string]lease
	since time.Time // from then on no lease is open that was granted before the oldest event that is kept, or that is not counted
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
	var data struct {
		Value   amount    `json:"value_leased_usd"`
		Expires time.Time `json:"expires_at"`
	}
	if json.Unmarshal(e.Data, &data) != nil || !now.Before(data.Expires) {
		return
	}
	if len(l.open) >= mostLeases {
		if l.sum(now); len(l.open) >= mostLeases {
			l.knowFrom(now.Add(longestLease))
			return
		}
	}
	if l.open == nil {
		l.open = map[string]lease{}
	}
	l.open[e.LeaseID] = lease{money.MicroUSD(data.Value), data.Expires}
}

// settle forgets a lease that was settled or has expired.
func (l *leases) settle(e eventRow) { delete(l.open, e.LeaseID) }

// knowFrom notes that all open leases are known only from then on.
func (l *leases) knowFrom(since time.Time) {
	if since.After(l.since) {
		l.since = since
	}
}

// sum returns what is leased, and whether that is all of it, once all events have been counted.
func (l *leases) sum(now time.Time) (sum money.MicroUSD, isAll bool) {
	for id, one := range l.open {
		if !now.Before(one.expires) {
			delete(l.open, id)
			continue
		}
		sum += one.value
	}
	return sum, !now.Before(l.since)
}
