package redisstore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/test/redistest"
)

// leasing describes a session of 10 actions and 100 micro-USD that allows leases of up to a minute.
var leasing = NewSession{MaxActions: 10, MaxValue: 100, MaxLease: time.Minute}

func (w tenant) lease(t *testing.T, s *Store, actions int64, value money.MicroUSD) Lease {
	t.Helper()
	n := NewLease{MaxActions: actions, MaxValue: value, Lifetime: time.Minute}
	return must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, n))(t)
}

func (w tenant) settle(t *testing.T, s *Store, id uuid.UUID, actions int64, value money.MicroUSD) Settlement {
	t.Helper()
	return *must(s.SettleLease(t.Context(), w.byKey(), id, NewSettlement{ActionCount: actions, ValueUsed: value}))(t).Settlement
}

// letLeasePass moves what is stored of leases as if their time had been up for a second.
func (w tenant) letLeasePass(t *testing.T, s *Store, leases ...Lease) {
	t.Helper()
	past := time.Now().Add(-time.Second).UnixMilli()
	client := peek(t, s)
	for _, l := range leases {
		must(client.HSet(t.Context(), s.keys.Lease(l.Agent, l.ID), "x", past).Result())(t)
		must(client.ZAddXX(t.Context(), s.keys.Leases(l.Agent, l.Session), redis.Z{Score: float64(past), Member: openLease(l)}).Result())(t)
		must(client.HSet(t.Context(), s.keys.Session(l.Agent, l.Session), "hx", past).Result())(t)
	}
}

func openLease(l Lease) string {
	return string(l.ID[:]) + strconv.FormatInt(l.MaxActions, 10) + " " + strconv.FormatInt(int64(l.MaxValue), 10)
}

// wantState checks how far the tenant's session is used.
func (w tenant) wantState(t *testing.T, s *Store, actions int64, used, held, overage money.MicroUSD) {
	t.Helper()
	got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
	if got.ActionCount != actions || got.ValueUsed != used || got.ValueHeld != held || got.ValueOverage != overage {
		t.Errorf("the session is %+v, want %d actions, %d used, %d held, %d overage", got, actions, used, held, overage)
	}
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
