package redisstore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
	"remit/money"
)

// The steps of leases are NewLease, NewSettlement and readLeaseStep.
type readLeaseStep struct{}

func (m *model) lease(id uuid.UUID) *Lease {
	for _, l := range m.leases {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// expireLeases spends the leases in full whose time is up.
func (m *model) expireLeases() {
	for _, l := range m.leases {
		if l.Status == LeaseOpen && !m.now.Before(l.Expires) {
			changed(m.leases, l).Status = Expired
			s := m.session(l.Session)
			s.ValueHeld -= l.MaxValue
			chargeValue(s, l.MaxValue)
		}
	}
}

func (m *model) grant(id, session uuid.UUID, n NewLease) (Lease, error) {
	s, err := m.usable(session)
	if err != nil {
		return Lease{}, err
	}
	l, limit := m.grantIn(s, id, n)
	if limit != "" {
		return Lease{}, &LimitError{Limit: limit, Usage: s.Usage}
	}
	m.note(session)
	return l, nil
}

// grantIn grants a lease of an active session, or returns the limit that refuses it.
func (m *model) grantIn(s *Session, id uuid.UUID, n NewLease) (Lease, string) {
	rest := s.Expires.Sub(m.now)
	lifetime := min(n.Lifetime, s.MaxLease, rest)
	actions, value := min(n.MaxActions, s.MaxActions-s.ActionCount), min(n.MaxValue, s.RemainingValue())
	switch {
	case s.MaxLease == 0 || n.Lifetime > s.MaxLease && !n.Partial:
		return Lease{}, "max_lease_seconds"
	case n.Lifetime > rest && !n.Partial:
		return Lease{}, "expires_at"
	case actions < n.MaxActions && (actions == 0 || !n.Partial):
		return Lease{}, "max_actions"
	case value < n.MaxValue && (value == 0 || !n.Partial):
		return Lease{}, valueLimit(s)
	}
	l := Lease{ID: id, Agent: m.agent, Session: s.ID, Status: LeaseOpen, MaxActions: actions, MaxValue: value,
		Created: m.now, Expires: m.now.Add(lifetime)}
	s.ActionCount += actions
	s.ValueHeld += value
	m.leases = append(m.leases, &l)
	return l, ""
}

// settle charges what was spent of a lease. What goes beyond it is overage unless the session is active and has room.
func (m *model) settle(id, renewal uuid.UUID, n NewSettlement) (Lease, error) {
	l := m.lease(id)
	switch {
	case l == nil:
		return Lease{}, ErrUnknownLease
	case l.Status == LeaseSettled && (l.Settlement.ActionCount != n.ActionCount || l.Settlement.ValueUsed != n.ValueUsed):
		return Lease{}, ErrLeaseSettled
	case l.Status == LeaseSettled:
		return *l, nil
	}
	s, late := m.session(l.Session), l.Status == Expired
	s.ActionCount -= l.MaxActions
	if late {
		chargeValue(s, -l.MaxValue)
	} else {
		s.ValueHeld -= l.MaxValue
	}
	mostActions, mostValue := l.MaxActions, l.MaxValue
	if s.Status == Active {
		mostActions, mostValue = max(mostActions, s.MaxActions-s.ActionCount), max(mostValue, s.RemainingValue())
	}
	actions, value := min(n.ActionCount, mostActions), min(n.ValueUsed, mostValue)
	s.ActionCount += actions
	chargeValue(s, value)
	m.countTypes(l.Session, n.Types, actions, value)
	s.ValueOverage += n.ValueUsed - value
	l = changed(m.leases, l)
	l.Status = LeaseSettled
	l.Settlement = &Settlement{ActionCount: n.ActionCount, ValueUsed: n.ValueUsed, OverageActions: n.ActionCount - actions,
		Overage: n.ValueUsed - value, Late: late, Settled: m.now}
	switch {
	case n.Renew == nil:
	case s.Status != Active:
		l.Settlement.Refusal = "session_not_active"
	case !s.Suspended.IsZero():
		l.Settlement.Refusal = "session_suspended"
	default:
		if next, limit := m.grantIn(s, renewal, *n.Renew); limit != "" {
			l.Settlement.Refusal, l.Settlement.Limit = "session_limit_reached", limit
			l.Settlement.Needed = &Needed{n.Renew.MaxActions, n.Renew.MaxValue}
		} else {
			l.Settlement.Renewed = &next
		}
	}
	m.note(l.Session)
	return *l, nil
}

// leased returns what a session holds by its open leases, and by holds that are spent when they expire.
func (m *model) leased(session uuid.UUID) (held, overage money.MicroUSD) {
	for _, l := range m.leases {
		switch {
		case l.Session != session:
		case l.Status == LeaseOpen:
			held += l.MaxValue
		case l.Status == LeaseSettled:
			overage += l.Settlement.Overage
		}
	}
	for _, t := range m.transactions {
		if t.Session == session && t.SpentOnExpiry {
			held += t.Held
		}
	}
	return held, overage
}

func (m *model) hadLeases(session uuid.UUID) bool {
	return slices.ContainsFunc(m.leases, func(l *Lease) bool { return l.Session == session }) ||
		slices.ContainsFunc(m.transactions, func(t *Transaction) bool { return t.Session == session && t.SpentOnExpiry })
}

func (p *player) grantLease(t *rapid.T) step {
	return p.maybeKeyed(t, step{op: p.newLease(t), target: p.session(t), byAPIKey: byAPIKey(t)})
}

func (p *player) newLease(t *rapid.T) NewLease {
	return NewLease{
		MaxActions: rapid.Int64Range(0, 8).Draw(t, "actions"), MaxValue: p.amount(t, 30) + 1, Partial: rapid.Bool().Draw(t, "partial"),
		Lifetime: time.Duration(rapid.SampledFrom([]int{1, 3, 0, 20}).Draw(t, "hours"))*time.Hour + time.Hour/4,
	}
}

func (p *player) settleLease(t *rapid.T) step {
	if len(p.m.leases) == 0 {
		return p.grantLease(t)
	}
	n := NewSettlement{ActionCount: rapid.Int64Range(0, 10).Draw(t, "actions"), ValueUsed: p.amount(t, 40), Types: p.typesOfLease(t)}
	if rapid.Bool().Draw(t, "renew") {
		n.Renew = new(p.newLease(t))
	}
	return p.maybeKeyed(t, step{op: n, target: p.lease(t), byAPIKey: byAPIKey(t)})
}

// lease picks a lease, mostly an open one.
func (p *player) lease(t *rapid.T) uuid.UUID {
	return pickID(t, p, "lease", p.m.leases, func(l *Lease) (uuid.UUID, bool) { return l.ID, l.Status == LeaseOpen })
}

// noteLeases keeps the ids of leases for pass, and returns the outcome as the model gives it.
func (w *fixture) noteLeases(call func() (Lease, error)) outcome {
	w.granting.RLock()
	defer w.granting.RUnlock()
	l, err := call()
	if err == nil {
		w.lock.Lock()
		w.leases = append(w.leases, granted(l)...)
		w.lock.Unlock()
	}
	return resultOf(l, err)
}

// granted returns the leases that an answer names.
func granted(l Lease) []uuid.UUID {
	if l.Settlement != nil && l.Settlement.Renewed != nil {
		return []uuid.UUID{l.ID, l.Settlement.Renewed.ID}
	}
	return []uuid.UUID{l.ID}
}

func leaseAt(l Lease, when func(time.Time) time.Time) Lease {
	l.Created, l.Expires = when(l.Created), when(l.Expires)
	if l.Settlement != nil {
		s := *l.Settlement
		s.Settled = when(s.Settled)
		if s.Renewed != nil {
			next := leaseAt(*s.Renewed, when)
			s.Renewed = &next
		}
		l.Settlement = &s
	}
	return l
}

// wantLeases checks that a session's open leases are those of the model, and that they are what it has leased. Leases that
// have expired may still be stored.
func wantLeases(t rapid.TB, m *model, s Session, leases []redis.Z, stored map[string]string) {
	t.Helper()
	sum, found, open := int64(0), map[string]string{}, map[string]string{}
	for _, l := range m.leases {
		if l.Session == s.ID && l.Status == LeaseOpen {
			open[openLease(*l)] = stamp(l.Expires)
		}
	}
	for _, tx := range m.transactions {
		if tx.Session == s.ID && tx.SpentOnExpiry && tx.Status == Pending {
			open[string(tx.ID[:])+fmt.Sprintf("0 %d %s", int64(tx.Hold), oneLine.Replace(tx.ActionType))] = stamp(tx.Expires)
		}
	}
	toSpend := 0
	for _, z := range leases {
		member, _ := z.Member.(string)
		parts := strings.SplitN(member[16:], " ", 3)
		value, err := strconv.ParseInt(parts[1], 10, 64)
		if sum += value; err != nil {
			t.Errorf("%q is leased", member)
		}
		if len(parts) == 3 {
			toSpend++
		}
		if expires := modelTime(time.UnixMilli(int64(z.Score)), m.start, m.now); expires.After(m.now) || open[member] != "" {
			found[member] = stamp(expires)
		}
	}
	if !maps.Equal(found, open) {
		t.Errorf("leased are %q, want %q", found, open)
	}
	if cmp.Or(stored["lh"], "0") != strconv.Itoa(toSpend) {
		t.Errorf("%q holds are spent when they expire, of %q", stored["lh"], leases)
	}
	if leased, _ := strconv.ParseInt(stored["lv"], 10, 64); leased != sum || (stored["lv"] == "") != (len(leases) == 0) {
		t.Errorf("%q is leased, the open leases are %d", stored["lv"], sum)
	}
}
