package console

import (
	"maps"
	"slices"
	"time"

	"remit/client"
	"remit/internal/chart"
)

// attention is what needs a look.
type attention struct {
	Requests  []client.MoreRequest // that wait for an answer, the oldest first
	Near      []sessionRow         // that used most of a limit, the nearest first
	Suspended []agentRow
	More      int                      // suspended agents beyond those
	MoreAsked int64                    // requests beyond those
	AskedPart bool                     // there may be still more
	Stuck     []client.TransactionInfo // that hold money for more than half of their time, the oldest first
	MoreStuck int64

	StuckPartly bool // there may be more than those, too
	MoreNear    bool // there may be more sessions near a limit

	Failing  []client.WebhookInfo
	Expiring []client.APIKeyInfo
	Notes    []string
	Budget   bool // most of it is used
}

const (
	shownRequests  = 10
	requestLooks   = 50 // at requests of which events tell
	shownNear      = 10
	shownStuck     = 10
	shownSuspended = 10
	expiringSoon   = 14 * 24 * time.Hour
)

// None reports whether nothing needs a look.
func (a attention) None() bool {
	return len(a.Requests)+len(a.Near)+len(a.Suspended)+len(a.Failing)+len(a.Expiring)+len(a.Notes)+len(a.Stuck) == 0 && !a.Budget
}

// parts are what is read for it. Without a follower the page does not know which requests and sessions to look at.
func (a *attention) parts(v *visit, f *follower) []part {
	parts := []part{
		{"Webhooks that fail", func() error { return a.readWebhooks(v) }},
		{"API keys that expire", func() error { return a.readKeys(v) }},
		{"What time brings", func() error { return a.readLag(v) }},
	}
	if f != nil {
		parts = append(parts, part{"Requests for more", func() error { return a.readRequests(v, f) }},
			part{"Sessions near a limit", func() error { return a.readNear(v, f) }})
	}
	return parts
}

// fill adds what pages have read already: the agents, what events said in the last day, and the budget.
func (a *attention) fill(all fleet, last map[string]int64, set *client.Budget) {
	for one, name := range all.Agents.all() {
		if one.state() != statusSuspended {
			continue
		}
		if len(a.Suspended) == shownSuspended {
			a.More++
			continue
		}
		a.Suspended = append(a.Suspended, one.row(name, spending{}))
	}
	for what, text := range otherCounts {
		if n := last[what]; n > 0 {
			a.Notes = append(a.Notes, plural(n, text[0], text[1])+" in the last 24 hours.")
		}
	}
	slices.Sort(a.Notes)
	a.Budget = set != nil && budgetBar(*set).Level() != chart.Free
}

// lateDue is from when on it is worth a line that expiries are recorded late.
const lateDue = time.Minute

func (a *attention) readLag(v *visit) error {
	lag, err := v.console.host.DueLag(v.ctx, v.who.Organization)
	if lag > lateDue {
		minutes := int64(lag / time.Minute)
		a.Notes = append(a.Notes, "Expiries are recorded "+plural(minutes, "minute", "minutes")+" late: events, and the return of unspent money, wait for that. Limits hold.")
	}
	return err
}

// readRequests reads the requests that events tell of. The service says whether each still waits.
func (a *attention) readRequests(v *visit, f *follower) error {
	f.mu.Lock()
	waiting := slices.Collect(maps.Values(f.stats.pending))
	f.mu.Unlock()
	slices.SortFunc(waiting, byAge)
	a.AskedPart = len(waiting) > requestLooks
	for _, asked := range waiting[:min(len(waiting), requestLooks)] {
		var r client.MoreRequest
		err := v.api.get("/v1/sessions/"+asked.session+"/requests/"+asked.id, &r)
		if err != nil && !isNotFound(err) {
			return err
		}
		if r.Status != statusPending {
			f.mu.Lock()
			f.stats.settle(asked, r, v.now)
			f.mu.Unlock()
			continue
		}
		if len(a.Requests) < shownRequests {
			a.Requests = append(a.Requests, r)
		} else {
			a.MoreAsked++
		}
	}
	return nil
}

// readStuck finds the transactions that have held money for more than half of their time. The list begins with the newest.
func (a *attention) readStuck(pending []client.TransactionInfo, now time.Time) {
	for _, t := range slices.Backward(pending) {
		if t.ValueHeld == 0 || now.Sub(t.CreatedAt) < t.ExpiresAt.Sub(t.CreatedAt)/2 {
			continue
		}
		if len(a.Stuck) < shownStuck {
			a.Stuck = append(a.Stuck, t)
		} else {
			a.MoreStuck++
		}
	}
}

// readNear reads the sessions that events tell of, and keeps those that are nearest to a limit.
func (a *attention) readNear(v *visit, f *follower) error {
	f.mu.Lock()
	near := slices.Clone(f.stats.near)
	f.mu.Unlock()
	rows := make([]sessionRow, 0, len(near))
	for _, id := range slices.Backward(near) {
		row := sessionRow{Now: v.now}
		err := v.api.get("/v1/sessions/"+id, &row.SessionInfo)
		if err != nil && !isNotFound(err) {
			return err
		}
		rows = append(rows, row)
	}
	rows = nearest(rows)
	a.Near, a.MoreNear = rows[:min(len(rows), shownNear)], len(rows) > shownNear
	return v.api.nameAgents(a.Near)
}

func (a *attention) readWebhooks(v *visit) error {
	var hooks []client.WebhookInfo
	err := v.api.get("/v1/webhooks", &hooks)
	for _, hook := range hooks {
		if !hook.FailingSince.IsZero() || hook.MissedEvents > 0 {
			a.Failing = append(a.Failing, hook)
		}
	}
	return err
}

func (a *attention) readKeys(v *visit) error {
	var keys []client.APIKeyInfo
	err := v.api.get("/v1/api-keys", &keys)
	for _, key := range keys {
		if key.ExpiresAt != nil && key.ExpiresAt.Sub(v.now) < expiringSoon && key.ExpiresAt.After(v.now) {
			a.Expiring = append(a.Expiring, key)
		}
	}
	return err
}
