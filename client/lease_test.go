package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"remit/client"
	"remit/money"
)

func charge(t *testing.T, lease *client.Lease, c client.Charge) {
	t.Helper()
	noError(t, lease.Charge(t.Context(), c))
}

func closeLease(t *testing.T, lease *client.Lease) {
	t.Helper()
	if err := lease.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// withLease gives a parallel test a lease of a session in a bubble, where time is free.
func withLease(t *testing.T, actions int64, value money.MicroUSD, use func(*testing.T, *ledger, *client.Lease)) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		books := newLedger(actions, value)
		use(t, books, books.lease(t, client.LeaseOptions{}))
	})
}

// requireUsed checks what the ledger has booked when all leases are settled.
func requireUsed(t *testing.T, books *ledger, actions int64, value money.MicroUSD) {
	t.Helper()
	if a, v := books.check(t); a != actions || v != value {
		t.Errorf("%d actions and %s are booked, want %d and %s", a, v, actions, value)
	}
	if n := books.openLeases(); n != 0 {
		t.Errorf("%d leases are open", n)
	}
}

func requireSettled(t *testing.T, books *ledger, lease *client.Lease, actions int64, value money.MicroUSD) {
	t.Helper()
	closeLease(t, lease)
	requireUsed(t, books, actions, value)
}

// Every unit of the budget is granted, and then the refusal is the session's.
func TestLeasesGrantTheLastUnitThatFits(t *testing.T) {
	t.Parallel()
	for _, limits := range []struct {
		leases, goroutines int
		actions            int64
		value              money.MicroUSD
		charge             client.Charge
		fit                int64
		limit              string
	}{
		{1, 1, 1, 0, client.Charge{}, 1, "max_actions"},
		{1, 1, 1000, 0, client.Charge{}, 1000, "max_actions"},
		{1, 1, 1000, 0, client.Charge{Count: 7}, 142, "max_actions"},
		{1, 1, 1e9, 1000, client.Charge{Value: 1}, 1000, "max_value_usd"},
		{1, 8, 1e9, 1000 * money.USD, client.Charge{Value: 3 * money.USD}, 333, "max_value_usd"},
		{1, 50, 20_000, 1000 * money.USD, client.Charge{}, 20_000, "max_actions"},
		{4, 10, 20_000, 1000 * money.USD, client.Charge{Value: 10}, 20_000, "max_actions"},
		{10, 3, 1e9, 2 * money.USD, client.Charge{Value: 100}, 20_000, "max_value_usd"},
		{1, 2, 20, 1000 * money.USD, client.Charge{Count: 20, Value: 1000 * money.USD}, 1, "max_actions"},
		{1, 1, 1e9, money.Max, client.Charge{Value: money.Max}, 1, "max_value_usd"},
	} {
		runInBubble(t, fmt.Sprintf("%d leases, %d goroutines, %d actions, %s USD", limits.leases, limits.goroutines, limits.actions, limits.value), func(t *testing.T) {
			books := newLedger(limits.actions, limits.value)
			books.fault = func(int, string) fault { return fault{before: time.Millisecond, after: time.Millisecond} }
			var granted atomic.Int64
			var leases []*client.Lease
			var all sync.WaitGroup
			for range limits.leases {
				lease := books.lease(t, client.LeaseOptions{})
				leases = append(leases, lease)
				for range limits.goroutines {
					all.Go(func() { granted.Add(chargeUntilRefused(t, lease, limits.charge, limits.limit)) })
				}
			}
			all.Wait()
			for _, lease := range leases {
				closeLease(t, lease)
			}
			if n := granted.Load(); n != limits.fit {
				t.Errorf("%d charges were granted, want %d", n, limits.fit)
			}
			requireUsed(t, books, limits.fit*max(limits.charge.Count, 1), money.MicroUSD(limits.fit)*limits.charge.Value)
		})
	}
}

// chargeUntilRefused returns the number of charges until the first refusal, which must name the limit.
func chargeUntilRefused(t *testing.T, lease *client.Lease, c client.Charge, limit string) (n int64) {
	for {
		err := lease.Charge(t.Context(), c)
		if refusal, is := errors.AsType[*client.LimitReached](err); is {
			if refusal.Limit != limit {
				t.Errorf("refused for %s, want %s", refusal.Limit, limit)
			}
			return n
		}
		if err != nil {
			t.Error(err)
			return n
		}
		n++
	}
}

func TestAnIdleLeaseHoldsNothingAndSendsNothing(t *testing.T) {
	withLease(t, 1e6, 1000*money.USD, func(t *testing.T, books *ledger, lease *client.Lease) {
		for range 100 {
			charge(t, lease, client.Charge{Value: money.USD / 10})
		}
		time.Sleep(7 * time.Second)
		requireUsed(t, books, 100, 10*money.USD)
		before := books.count("any")
		time.Sleep(time.Hour)
		if n := books.count("any") - before; n != 0 {
			t.Errorf("an idle lease sent %d requests", n)
		}
		charge(t, lease, client.Charge{Value: money.USD / 10})
		if n := books.count("charge"); n != 0 {
			t.Errorf("%d charges were sent", n)
		}
		requireSettled(t, books, lease, 101, 10*money.USD+money.USD/10)
	})
}

// A grant lasts about a second at the pace of the charges, however fast that is, and shrinks with it.
func TestGrantsFollowThePace(t *testing.T) {
	t.Parallel()
	for _, pace := range []int{1, 10, 1000, 20_000} {
		t.Run(fmt.Sprint(pace, " a second"), func(t *testing.T) {
			withLease(t, 1e9, 1e6*money.USD, func(t *testing.T, books *ledger, lease *client.Lease) {
				chargeFor(t, lease, 5*time.Second, pace)
				before := books.count("any")
				chargeFor(t, lease, 20*time.Second, pace)
				if n := books.count("any") - before; n > 30 {
					t.Errorf("%d requests in 20 seconds", n)
				}
				chargeFor(t, lease, 20*time.Second, 1)
				used, _ := books.check(t)
				if held := used - int64(25*pace+20); held > 200 {
					t.Errorf("%d actions are held at a charge a second", held)
				}
				requireSettled(t, books, lease, int64(25*pace+20), money.MicroUSD(25*pace+20)*7)
				if n := books.count("charge"); n != 0 {
					t.Errorf("%d charges were sent", n)
				}
			})
		})
	}
}

func chargeFor(t *testing.T, lease *client.Lease, d time.Duration, pace int) {
	t.Helper()
	for range int(d.Seconds()) * pace {
		charge(t, lease, client.Charge{ActionType: "step", Value: 7})
		time.Sleep(time.Second / time.Duration(pace))
	}
}

func TestALeaseLeavesMostOfTheBudgetToOthers(t *testing.T) {
	withLease(t, 8000, 0, func(t *testing.T, books *ledger, lease *client.Lease) {
		for range 2000 {
			charge(t, lease, client.Charge{})
		}
		books.change(func() {
			if books.largest > 1000 {
				t.Errorf("one grant took %d of 8000 actions", books.largest)
			}
		})
		if used, _ := books.check(t); used > 2000+2*750 {
			t.Errorf("%d actions are held or used after 2000 charges", used)
		}
		closeLease(t, lease)
	})
}

// The grant may be spent in an outage and after the session's end.
func TestAnOutageAndTheEndOfASessionShowWhenTheGrantIsUsedUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(*ledger)
		is      func(error) bool
		closes  error
	}{
		"an outage": {func(b *ledger) { b.meets(fail()) }, func(err error) bool { return errors.Is(err, client.ErrUnavailable) }, client.ErrUnavailable},
		"the end": {func(b *ledger) { b.change(func() { b.status = "completed" }) }, func(err error) bool {
			ended, is := errors.AsType[*client.SessionNotActive](err)
			return is && ended.SessionStatus == "completed"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			withLease(t, 1e6, 0, func(t *testing.T, books *ledger, lease *client.Lease) {
				test.happens(books)
				for range 16 {
					charge(t, lease, client.Charge{})
				}
				if err := lease.Charge(t.Context(), client.Charge{}); !test.is(err) {
					t.Error(err)
				}
				if err := lease.Close(t.Context()); !errors.Is(err, test.closes) {
					t.Errorf("Close: %v, want %v", err, test.closes)
				}
				books.meets(fault{})
				requireSettled(t, books, lease, 16, 0)
			})
		})
	}
}

func TestNothingIsSpentFromAnExpiredGrant(t *testing.T) {
	t.Parallel()
	for _, grant := range []struct{ life, answered time.Duration }{
		{time.Second, 0},
		{2 * time.Second, 0},
		{4 * time.Second, 0},
		{4 * time.Second, 3 * time.Second}, // its time counts from the request
	} {
		synctest.Test(t, func(t *testing.T) {
			books := newLedger(1e6, 0)
			books.fault = func(n int, place string) fault { // it is never renewed, which a lease may try as soon as it is granted
				if place == "grant" && n > 1 {
					return fail()
				}
				return fault{after: grant.answered}
			}
			session := books.session(t)
			must(session.Get(t.Context()))(t)       // for the token
			begin := time.Now().Add(grant.answered) // the lease reads the session first
			lease := must(session.Lease(t.Context(), client.LeaseOptions{ExpiresIn: grant.life}))(t)
			books.meets(fail())
			time.Sleep(time.Until(begin.Add(grant.life * 9 / 10)))
			charge(t, lease, client.Charge{})
			time.Sleep(time.Until(begin.Add(grant.life - time.Millisecond)))
			if err := lease.Charge(t.Context(), client.Charge{}); !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("%+v: %v, want %v", grant, err, client.ErrUnavailable)
			}
			books.meets(fault{})
			requireSettled(t, books, lease, 1, 0)
		})
	}
}

// A lease is renewed in good time, so that no charge waits.
func TestALeaseOutlivesItsGrants(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		books := newLedger(1e6, 0)
		books.maxLease = 2
		books.fault = func(int, string) fault { return fault{before: 20 * time.Millisecond} }
		lease := books.lease(t, client.LeaseOptions{})
		for range 60 {
			begin := time.Now()
			charge(t, lease, client.Charge{})
			if waited := time.Since(begin); waited > 0 {
				t.Errorf("a charge waited %s", waited)
			}
			time.Sleep(500 * time.Millisecond)
		}
		requireSettled(t, books, lease, 60, 0)
		if books.late != 0 || books.count("charge") != 0 {
			t.Errorf("%d late settlements, %d charges sent", books.late, books.count("charge"))
		}
	})
}

func TestSomeChargesGoToTheSession(t *testing.T) {
	withLease(t, 1e6, 1000*money.USD, func(t *testing.T, books *ledger, lease *client.Lease) {
		for i, c := range []client.Charge{
			{Scope: "pay"}, {IdempotencyKey: "own"}, {Value: 900 * money.USD}, {Count: 1001},
			{ActionType: string(make([]rune, 201))}, {ActionType: "\xff"},
		} {
			charge(t, lease, c) // the ledger takes also what the service refuses
			if n := books.count("charge"); n != i+1 {
				t.Errorf("%+v: %d charges were sent, want %d", c, n, i+1)
			}
		}
		if err := lease.Charge(t.Context(), client.Charge{Value: -1}); err == nil {
			t.Error("a negative value was charged")
		}
		closeLease(t, lease)
	})
}

// A settlement reports at most 64 action types.
func TestFurtherActionTypesAreCountedTogether(t *testing.T) {
	withLease(t, 1e6, 1000*money.USD, func(t *testing.T, books *ledger, lease *client.Lease) {
		charge(t, lease, client.Charge{Count: 3}) // of no type
		for i := range 300 {
			charge(t, lease, client.Charge{ActionType: fmt.Sprint("type-", i%100), Value: 5})
		}
		charge(t, lease, client.Charge{ActionType: "other"})
		requireSettled(t, books, lease, 304, 1500)
		if len(books.types) != 64 || books.types["type-0"] != 3 || books.types["other"] != 304-63*3 {
			t.Errorf("%d types: %v", len(books.types), books.types)
		}
	})
}

func TestALeaseIsClosedOnce(t *testing.T) {
	withLease(t, 1e6, 0, func(t *testing.T, books *ledger, lease *client.Lease) {
		charge(t, lease, client.Charge{})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { closeLease(t, lease) })
		}
		all.Wait()
		if err := lease.Charge(t.Context(), client.Charge{}); !errors.Is(err, client.ErrLeaseClosed) {
			t.Errorf("%v, want %v", err, client.ErrLeaseClosed)
		}
		requireUsed(t, books, 1, 0)
		if n := books.count("settle"); n != 1 {
			t.Errorf("%d settlements", n)
		}
	})
}

func TestAWaitingChargeEndsWithItsContext(t *testing.T) {
	withLease(t, 1e6, 0, func(t *testing.T, books *ledger, lease *client.Lease) {
		books.meets(fault{before: 3 * time.Second})
		for range 16 {
			charge(t, lease, client.Charge{})
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := lease.Charge(ctx, client.Charge{})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrOutcomeUnknown) || time.Since(begin) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		books.meets(fault{})
		requireSettled(t, books, lease, 16, 0)
	})
}

// The budget grows while nothing is left: leases serve again.
func TestATopUpLetsALeaseServeAgain(t *testing.T) {
	withLease(t, 100, 0, func(t *testing.T, books *ledger, lease *client.Lease) {
		chargeUntilRefused(t, lease, client.Charge{}, "max_actions")
		books.change(func() { books.maxActions = 1e6 })
		before := books.count("charge")
		for range 1000 {
			charge(t, lease, client.Charge{})
		}
		if n := books.count("charge") - before; n > 5 {
			t.Errorf("%d charges were sent", n)
		}
		requireSettled(t, books, lease, 1100, 0)
	})
}

func TestALeasedChargeAllocatesNothing(t *testing.T) {
	leased := client.Charge{ActionType: "llm.call", Value: 12}
	books := newLedger(1e9, 1e6*money.USD)
	lease := books.lease(t, client.LeaseOptions{})
	for range 100_000 {
		charge(t, lease, leased)
	}
	ctx := t.Context()
	least := 1.0
	for range 10 { // a renewal allocates, and may fall into one of the runs
		least = min(least, testing.AllocsPerRun(1000, func() {
			if err := lease.Charge(ctx, leased); err != nil {
				t.Error(err)
			}
		}))
	}
	if least != 0 {
		t.Errorf("a charge makes %v allocations", least)
	}
	closeLease(t, lease)
}
