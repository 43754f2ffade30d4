package fleet

import (
	"context"
	"net/http"
	"sync"
	"time"

	"remit/client"
)

// leaseTime is how long a lease of the fleet may last.
const leaseTime = time.Minute

// openLease opens the lease that the actions on a session are charged to.
func (f *fleet) openLease(ctx context.Context, s *session) error {
	t := f.persist(ctx, opLease, time.Now(), func(ctx context.Context) (err error) {
		s.lease, err = s.sdk.Lease(ctx, client.LeaseOptions{ExpiresIn: leaseTime})
		return err
	})
	return t.err
}

// chargeLease charges the session's lease for an action. The service sees few of these charges. Whether all are in its usage
// is checked at the end of the session.
func (f *fleet) chargeLease(ctx context.Context, s *session, a action, due time.Time) *recorder {
	known := s.send(effect{charge: a.requested})
	t := f.call(ctx, opLeased, due, func(ctx context.Context) error {
		return s.lease.Charge(ctx, client.Charge{ActionType: a.kind, Value: a.requested.value, Count: a.requested.count})
	})
	if len(t.own()) == 0 {
		f.local.Add(1)
	}
	f.audit.add(checkLeased(s.finish(known, known.requested, t.reply())))
	return t
}

// checkLeased checks the outcome of an action that was charged to a lease.
func checkLeased(f fact) []violation {
	switch f.reply.outcome() {
	case acknowledged:
		return nil
	case unknown:
		return checkUnanswered(f.session, f.reply)
	}
	p := readProblem(f.reply)
	if f.reply.status != http.StatusForbidden || p.Code != codeLimitReached {
		return []violation{found(ruleStatus, f.session, "leased action refused with %s", f.reply)}
	}
	return checkRefusal(f, p)
}

// closeLeases settles the leases, so that the sessions hold nothing.
func (f *fleet) closeLeases(ctx context.Context) error {
	return each(ctx, len(f.sessions), func(ctx context.Context, i int) error {
		s := f.sessions[i]
		if s.lease == nil {
			return nil
		}
		t := f.persist(ctx, opSettle, time.Now(), s.lease.Close)
		if t.err != nil {
			f.audit.add([]violation{found(ruleUnchecked, s.sdk.ID(), "closing its lease: %v", t.err)})
		}
		return ctx.Err()
	})
}

// dropLeases ends what leases do in the background, without another request.
func (f *fleet) dropLeases() {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	var all sync.WaitGroup
	for _, s := range f.sessions {
		if s != nil && s.lease != nil {
			all.Go(func() { _ = s.lease.Close(over) }) // what is not settled counts as spent
		}
	}
	all.Wait()
}
