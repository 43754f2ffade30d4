package fleet

import (
	"context"
	"sync"
	"time"

	"remit/client"
)

// Usage is what sessions show, line by line: its lines must add up to that exactly, whatever was lost on the way.

// shown adds up what sessions show after their end. It is safe for concurrent use.
type shown struct {
	mu      sync.Mutex
	sum     charge
	unknown int // sessions that could not be read
}

// add adds a session as it reads after its end, and returns what it shows.
func (s *shown) add(after reply) (used charge, known bool) {
	read, err := readSession(after)
	s.mu.Lock()
	defer s.mu.Unlock()
	if after.outcome() != acknowledged || err != nil {
		s.unknown++ // checkStored says why
		return charge{}, false
	}
	used = charge{read.ActionCount, read.ValueUsed}
	s.sum = s.sum.plus(used)
	return used, true
}

// reconcileUsage compares the lines of a session's usage with what it shows after its end.
func (f *fleet) reconcileUsage(ctx context.Context, s *session, closed sessionFact) {
	if want, known := f.shown.add(closed.after); known {
		f.audit.add(f.checkUsage(ctx, closed.session, want, s.sdk.Usage))
	}
}

// reconcileReport compares the organization's usage with what all of its sessions show together.
func (f *fleet) reconcileReport(ctx context.Context) {
	report := func(ctx context.Context) ([]client.UsageLine, error) {
		return f.org.Usage(ctx, client.UsageParams{GroupBy: []string{"day", "action_type"}})
	}
	if f.shown.unknown > 0 {
		f.audit.add([]violation{found(ruleUnchecked, "the organization's usage", "%d sessions are not known", f.shown.unknown)})
		return
	}
	f.audit.add(f.checkUsage(ctx, "the organization", f.shown.sum, report))
}

// checkUsage reads lines of usage, and checks their sum.
func (f *fleet) checkUsage(ctx context.Context, subject string, want charge, read func(context.Context) ([]client.UsageLine, error)) []violation {
	lines, r := f.usageLines(ctx, read)
	switch r.outcome() {
	case unknown:
		return []violation{found(ruleUnchecked, subject, "its usage: %s", r)}
	case refused:
		return []violation{found(ruleStatus, subject, "its usage: %s", r)}
	}
	var sum charge
	for _, line := range lines {
		sum = sum.plus(charge{line.ActionCount, line.Value})
	}
	if sum != want {
		return []violation{found(ruleUsage, subject, "its lines add up to %s; shown are %s", sum, want)}
	}
	return nil
}

// usageLines reads lines of usage.
func (f *fleet) usageLines(ctx context.Context, read func(context.Context) ([]client.UsageLine, error)) (lines []client.UsageLine, r reply) {
	t := f.persist(ctx, opUsage, time.Now(), func(ctx context.Context) (err error) {
		lines, err = read(ctx)
		return err
	})
	return lines, t.reply()
}
