package redisstore

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/test/redistest"
)

// The version before knows nothing of leases. Beside it they may be shown as used, and no limit is passed and no settlement
// lost.
func TestLeasesKeepTheirLimitsBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		const most = 1000
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000, MaxValue: most, MaxLease: time.Minute})
		token, old := w.exchange(t, s).AccessToken, before{s}
		ctx, caller, id := t.Context(), Caller{Token: &token}, w.session.ID
		var spent money.MicroUSD // what must be booked in the end
		var actions int64
		var open []Lease
		var pending []uuid.UUID
		settle := func(l Lease, value money.MicroUSD) {
			must(s.SettleLease(ctx, caller, l.ID, NewSettlement{ActionCount: 1, ValueUsed: value}))(t)
			spent, actions = spent+value, actions+1
		}
		for range 150 {
			value := money.MicroUSD(rand.Int64N(20))
			switch rand.IntN(6) {
			case 0, 1:
				l, err := s.GrantLease(ctx, caller, id, NewLease{MaxActions: 1, MaxValue: 100, Lifetime: time.Minute, Partial: true})
				if err == nil {
					open = append(open, l)
				}
			case 2:
				if len(open) > 0 {
					settle(open[0], min(value, open[0].MaxValue))
					open = open[1:]
				}
			case 3:
				if _, err := old.charge(ctx, token, id, Charge{Count: 1, Value: value}); err == nil {
					spent, actions = spent+value, actions+1
				} else if !isLimit(err) {
					t.Fatal(err)
				}
			case 4:
				begun, err := old.begin(ctx, token, NewTransaction{Session: id, Value: value, Lifetime: time.Hour, ActionType: "pay", PreState: "{}"})
				if err == nil {
					pending, actions = append(pending, begun), actions+1
				} else if !isLimit(err) {
					t.Fatal(err)
				}
			case 5:
				if len(pending) > 0 {
					if err := old.rollback(ctx, token, id, pending[0]); err != nil {
						t.Fatal(err)
					}
					pending = pending[1:]
				}
			}
			shown := must(s.Session(ctx, caller, id))(t)
			if sum := shown.ValueUsed + shown.ValueHeld; sum > most || sum < spent || shown.ValueUsed < spent {
				t.Fatalf("%d was spent, and the session is %+v", spent, shown)
			}
		}
		for _, begun := range pending {
			if err := old.rollback(ctx, token, id, begun); err != nil {
				t.Fatal(err)
			}
		}
		if len(open) > 0 { // one expires, and the version before meets that
			w.letLeasePass(t, s, open[0])
			must(old.read(ctx, token, id))(t)
		}
		for _, l := range open {
			settle(l, 1)
		}
		w.wantState(t, s, actions, spent, 0, 0)
	})
}

func isLimit(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit)
}

// Time that steps makes a lease neither open again nor lost.
func TestALeaseThatExpiredStaysSoThoughTheClockGoesBack(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100, MaxLease: time.Minute, Lifetime: 24 * time.Hour})
		l := w.lease(t, s, 4, 40)
		step(2 * time.Minute)
		w.wantState(t, s, 4, 40, 0, 0)
		step(0)
		w.wantState(t, s, 4, 40, 0, 0)
		if read := must(s.Lease(t.Context(), w.byKey(), l.ID))(t); read.Status != Expired {
			t.Errorf("it is %s", read.Status)
		}
		fresh := w.lease(t, s, 1, 10)
		step(-3 * time.Hour)
		w.wantState(t, s, 5, 40, 10, 0)
		if late := w.settle(t, s, l.ID, 1, 5); !late.Late {
			t.Error("it is not late")
		}
		if w.settle(t, s, fresh.ID, 1, 10).Late {
			t.Error("the other one is late")
		}
		w.wantState(t, s, 2, 15, 0, 0)
	})
}

// A holder whose answer is lost repeats the same numbers, at any instance.
func TestASettlementWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, leasing)
		l := w.lease(t, s, 4, 40)
		n := NewSettlement{ActionCount: 1, ValueUsed: 10, Renew: &NewLease{MaxActions: 2, MaxValue: 20, Lifetime: time.Minute}}
		must(s.SettleLease(t.Context(), w.byKey(), w.lease(t, s, 1, 1).ID, NewSettlement{}))(t) // the scripts are known
		p.LoseReplies(settleLease.SHA(), 100)
		_, err := s.SettleLease(t.Context(), w.byKey(), l.ID, n)
		p.LoseReplies("", 0)
		if !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("its answer was not lost: %v", err)
		}
		settled := must(s.SettleLease(t.Context(), w.byKey(), l.ID, n))(t)
		if settled.Settlement.Renewed == nil || settled.Settlement.Renewed.MaxValue != 20 {
			t.Errorf("settled with %+v", settled.Settlement)
		}
		w.wantState(t, s, 3, 10, 20, 0)
	})
}
