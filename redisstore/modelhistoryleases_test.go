package redisstore

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"remit/money"
)

// drawLease draws a lease to ask for. A quarter of them expire when time passes next, others later or never.
func drawLease(random *rand.Rand) NewLease {
	return NewLease{
		MaxActions: random.Int64N(4), MaxValue: money.MicroUSD(1 + random.IntN(15)), Partial: random.IntN(2) == 0,
		Lifetime: []time.Duration{0, 1, 1000, 1000}[random.IntN(4)]*time.Hour + time.Hour/4,
	}
}

// useLease settles or reads one of the latest leases. Other clients may do the same concurrently, mostly with the same
// numbers. A lease that expired meanwhile is settled late.
func (c *clients) useLease(random *rand.Rand) step {
	c.lock.Lock()
	latest := c.leases[max(0, len(c.leases)-6):]
	var id uuid.UUID
	if len(latest) > 0 {
		id = latest[random.IntN(len(latest))]
	}
	c.lock.Unlock()
	switch kind := random.IntN(10); {
	case id == uuid.Nil:
		return c.maybeKeyed(random, step{op: drawLease(random), target: c.session})
	case kind < 2:
		return step{op: readLeaseStep{}, target: id, byAPIKey: kind == 0}
	}
	n := NewSettlement{ActionCount: int64(id[8] % 5), ValueUsed: money.MicroUSD(id[9] % 20)}
	if random.IntN(8) == 0 {
		n.ActionCount++
	}
	if random.IntN(2) == 0 {
		n.Renew = new(drawLease(random))
	}
	return c.maybeKeyed(random, step{op: n, target: id})
}

// One minimal history for each rule of leases that an answer can break.
func TestHistoriesThatBreakARuleOfLeasesAreNotLinearizable(t *testing.T) {
	t.Parallel()
	session, first, second, third := uuid.UUID{1}, uuid.UUID{2}, uuid.UUID{3}, uuid.UUID{4}
	lease := NewLease{MaxActions: 4, MaxValue: 40, Lifetime: time.Hour}
	read := sequentialStep{step{op: readSessionStep{}, target: session}, uuid.Nil}
	settlement := sequentialStep{step{op: NewSettlement{ActionCount: 1, ValueUsed: 10, Renew: &lease}, target: first}, second}
	steps := []sequentialStep{
		{step{op: NewSession{MaxActions: 7, MaxValue: 60, MaxLease: time.Hour, Lifetime: 9 * time.Hour}}, session},
		{step{op: lease, target: session}, first},
		{step{op: lease, target: session}, uuid.Nil}, // does not fit
		read,
		settlement,
		read,
		settlement, // again
		{step{op: NewSettlement{ActionCount: 2, ValueUsed: 10}, target: first}, uuid.Nil},
		{step{op: NewLease{MaxActions: 4, MaxValue: 40, Lifetime: 3 * time.Hour, Partial: true}, target: session}, third},
		{step{op: time.Hour}, uuid.Nil}, // the leases expire
		{step{op: readLeaseStep{}, target: second}, uuid.Nil},
		read,
		{step{op: NewSettlement{ActionCount: 9, ValueUsed: 45}, target: second}, uuid.Nil}, // late, and more than fits
		read,
	}
	start := time.UnixMilli(0)
	blank := model{start: start, now: start, outcomes: map[idempotencyKey]*firstOutcome{}}
	history := sequential(blank, steps)
	for _, test := range []struct {
		name  string
		place int
		wrong func(outcome) outcome
	}{
		{"more is granted than asked for", 1, ofLease(func(l *Lease) { l.MaxValue++ })},
		{"a lease lasts longer than asked for", 1, ofLease(func(l *Lease) { l.Expires = l.Expires.Add(time.Hour) })},
		{"a lease beyond the limit is granted", 2, func(outcome) outcome {
			return outcome{value: Lease{ID: third, Session: session, Status: LeaseOpen, MaxActions: 4, MaxValue: 40, Created: start,
				Expires: start.Add(time.Hour)}}
		}},
		{"the actions of a lease are not counted", 3, ofSession(func(s *Session) { s.ActionCount = 0 })},
		{"the value of a lease is not held", 3, ofSession(func(s *Session) { s.ValueHeld = 0 })},
		{"a settlement forgets its renewal", 4, ofSettlement(func(s *Settlement) { s.Renewed = nil })},
		{"a settlement in time is late", 4, ofSettlement(func(s *Settlement) { s.Late = true })},
		{"a settlement is lost", 5, ofSession(func(s *Session) { s.ValueUsed = 0 })},
		{"what was not spent is not returned", 5, ofSession(func(s *Session) { s.ActionCount = 8 })},
		{"a renewal is granted twice", 6, ofSettlement(func(s *Settlement) { s.Renewed = &Lease{ID: third} })},
		{"a lease is settled with other numbers", 7, func(outcome) outcome {
			return outcome{value: Lease{ID: first, Status: LeaseSettled, Settlement: &Settlement{ActionCount: 2}}}
		}},
		{"a partial lease takes more than there is", 8, ofLease(func(l *Lease) { l.MaxActions = 4 })},
		{"a lease outlives its time", 10, ofLease(func(l *Lease) { l.Status = LeaseOpen })},
		{"an expired lease is returned", 11, ofSession(func(s *Session) { s.ValueUsed = 10 })},
		{"an expired lease holds something", 11, ofSession(func(s *Session) { s.ValueHeld = 40 })},
		{"a late settlement is in time", 12, ofSettlement(func(s *Settlement) { s.Late = false })},
		{"a settlement forgets its overage", 12, ofSettlement(func(s *Settlement) { s.Overage = 0 })},
		{"an overage is charged beyond the limit", 13, ofSession(func(s *Session) { s.ValueUsed += s.ValueOverage })},
	} {
		wrong := slices.Clone(history)
		wrong[test.place].Output = test.wrong(wrong[test.place].Output.(outcome))
		if !porcupine.CheckOperations(checker(&blank), history) || porcupine.CheckOperations(checker(&blank), wrong) {
			t.Errorf("%s: the true history is not legal, or the wrong one is", test.name)
		}
	}
}

func ofLease(change func(*Lease)) func(outcome) outcome { return ofValue(change) }

func ofSettlement(change func(*Settlement)) func(outcome) outcome {
	return ofLease(func(l *Lease) {
		s := *l.Settlement
		change(&s)
		l.Settlement = &s
	})
}
