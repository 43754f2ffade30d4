package metered

import (
	"context"
	"time"

	"remit/client"
	"remit/client/wire"
	"remit/money"
)

// settlement settles the hold of one call. Of its functions but extend, one is called once.
type settlement struct {
	ctx       context.Context // of the call, without its end
	transport *Transport
	tx        *client.Transaction
	call      *wire.Call
	hold      money.MicroUSD
	begun     time.Time
}

func (s *settlement) commit(value money.MicroUSD) {
	ctx, cancel := context.WithTimeout(s.ctx, settleLimit)
	defer cancel()
	s.reported(s.tx.Commit(ctx, client.CommitParams{Value: &value}), "commit")
}

func (s *settlement) rollBack(reason string) {
	s.reported(s.tx.Rollback(s.ctx, reason), "roll back") // which bounds its time itself
}

// extend keeps a hold from expiring while its call goes on.
func (s *settlement) extend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	return s.tx.Update(ctx, client.TransactionChanges{ExpiresIn: s.transport.expiry()})
}

// extendUntil extends the hold of a call whose answer has not begun, until the ctx ends, for three times the hold's time at most.
func (s *settlement) extendUntil(ctx context.Context) {
	ticker := time.NewTicker(s.transport.period())
	defer ticker.Stop()
	for range 4 {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := s.extend(ctx); ctx.Err() == nil {
				s.reported(err, "extend")
			}
		}
	}
}

// untilExtension returns when extendUntil would extend the hold next.
func (s *settlement) untilExtension() time.Duration {
	period := s.transport.period()
	return period - time.Since(s.begun)%period
}

func (s *settlement) reported(err error, what string) { s.transport.reported(err, what, s.tx.ID()) }

// commitUsage commits what the usage costs. A usage that has no cost is as if there was none: the hold is committed.
func (s *settlement) commitUsage(m *wire.Meter) {
	cost, known := m.Cost()
	if !known {
		cost = s.hold
	}
	s.commit(cost)
}

// commitSoFar commits the most that a stream that broke off can have cost.
func (s *settlement) commitSoFar(m *wire.Meter) {
	cost, err := m.Most()
	if err != nil {
		cost = s.hold
	}
	s.commit(min(cost, s.hold))
}
