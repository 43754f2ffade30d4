package client_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"remit/client"
	"remit/money"
)

// A settlement or a grant whose response was lost is sent again until it is answered, changes nothing then, and is not held until
// it expires. The next grant serves.
func TestWhatIsLostTakesEffectOnce(t *testing.T) {
	t.Parallel()
	for _, lost := range []struct {
		place       string
		first, last int
	}{{"settle", 1, 1}, {"settle", 1, 3}, {"settle", 1, 6}, {"settle", 1, 20}, {"grant", 2, 11}} {
		runInBubble(t, fmt.Sprint(lost), func(t *testing.T) {
			books := newLedger(1e6, 0)
			books.fault = func(n int, place string) fault {
				return fault{lose: place == lost.place && n >= lost.first && n <= lost.last}
			}
			lease := books.lease(t, client.LeaseOptions{})
			for range 200 {
				charge(t, lease, client.Charge{ActionType: "step"})
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(2 * time.Minute)
			requireUsed(t, books, 200, 0)
			if n := books.count("settle"); lost.place == "settle" && n <= lost.last {
				t.Errorf("%d settlements were sent, %d of them lost", n, lost.last)
			}
			closeLease(t, lease)
		})
	}
}

// The service forgets a settled lease after an hour. A settlement whose response was lost, and which is not found then, was made.
func TestASettlementThatIsForgottenWasMade(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		books := newLedger(1e6, 0)
		begun := time.Now()
		books.fault = func(n int, place string) fault {
			if place == "settle" && n > 1 && time.Since(begun) < 62*time.Minute {
				return fail()
			}
			return fault{lose: place == "settle" && n == 1}
		}
		lease := books.lease(t, client.LeaseOptions{})
		charge(t, lease, client.Charge{})
		time.Sleep(63 * time.Minute)
		charge(t, lease, client.Charge{})
		requireSettled(t, books, lease, 2, 0)
	})
}

// The first grant may be given though Lease failed. It is given back.
func TestALostFirstGrantIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		books := newLedger(1e6, 0)
		books.fault = func(n int, place string) fault { return fault{lose: place == "grant" && n <= 4} }
		if _, err := books.session(t).Lease(t.Context(), client.LeaseOptions{}); !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("%v, want %v", err, client.ErrOutcomeUnknown)
		}
		time.Sleep(10 * time.Second)
		requireUsed(t, books, 0, 0)
		if n := books.count("settle"); n != 1 {
			t.Errorf("%d settlements", n)
		}
	})
}

// A settlement that the service refuses for good is given up, and Close says so.
func TestARefusedSettlementCountsAsSpent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		books := newLedger(1e6, 0)
		books.fault = func(n int, place string) fault {
			if place == "settle" {
				return fault{instead: refusal(404, "not_found")}
			}
			return fault{}
		}
		lease := books.lease(t, client.LeaseOptions{})
		charge(t, lease, client.Charge{})
		for range 2 {
			if err := lease.Close(t.Context()); !errors.Is(err, client.ErrNotFound) {
				t.Errorf("%v, want %v", err, client.ErrNotFound)
			}
		}
		if n := books.count("settle"); n != 1 {
			t.Errorf("%d settlements were sent", n)
		}
		if used, _ := books.check(t); used != 16 {
			t.Errorf("%d actions are used, want 16", used)
		}
	})
}

// trial is a random run: processes with leases charge one session through a network with faults, and some are killed.
type trial struct {
	books    *ledger
	random   *rand.Rand
	mu       sync.Mutex // for random
	granted  atomic.Int64
	spent    atomic.Int64
	unknown  atomic.Int64 // actions whose outcome is unknown
	doubted  atomic.Int64 // value, the same
	unopened atomic.Int64 // leases
}

func (r *trial) below(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.IntN(n)
}

func (r *trial) duration(most time.Duration) time.Duration { return time.Duration(r.below(int(most))) }

// fault delays, loses and refuses one request in ten each. Others take up to 20 ms. Leases open without faults.
func (r *trial) fault(n int, place string) fault {
	f := fault{before: r.duration(10 * time.Millisecond), after: r.duration(10 * time.Millisecond)}
	if place == "token" || place == "grant" && n <= 10 {
		return f
	}
	switch r.below(10) {
	case 0:
		f.before = r.duration(12 * time.Second)
	case 1:
		f.after = r.duration(12 * time.Second)
	case 2:
		f.lose = true
	case 3:
		return fail()
	}
	return f
}

// process opens a lease and charges it from some goroutines, until the budget is used up or it is killed.
func (r *trial) process(t *testing.T, killed bool) {
	lease, err := r.books.session(t).Lease(t.Context(), client.LeaseOptions{ExpiresIn: time.Duration(1+r.below(20)) * time.Second})
	if err != nil {
		r.unopened.Add(1) // its first grant may count as spent
		return
	}
	var all sync.WaitGroup
	for range 1 + r.below(4) {
		all.Go(func() { r.charges(t, lease) })
	}
	if killed {
		time.Sleep(r.duration(20 * time.Second))
		lease.Kill()
	}
	all.Wait()
	for !killed && lease.Close(t.Context()) != nil {
		time.Sleep(time.Second)
	}
}

func (r *trial) charges(t *testing.T, lease *client.Lease) {
	for range 5000 {
		c := client.Charge{Count: int64(1 + r.below(3)), Value: money.MicroUSD(r.below(100)), ActionType: fmt.Sprint(r.below(70))}
		err := lease.Charge(t.Context(), c)
		_, isLimit := errors.AsType[*client.LimitReached](err)
		switch {
		case err == nil:
			r.granted.Add(c.Count)
			r.spent.Add(int64(c.Value))
		case isLimit, errors.Is(err, client.ErrLeaseClosed):
			return
		case errors.Is(err, client.ErrOutcomeUnknown):
			r.unknown.Add(c.Count)
			r.doubted.Add(int64(c.Value))
		}
		if r.below(20) == 0 {
			time.Sleep(r.duration(200 * time.Millisecond))
		}
	}
}

var seeds = uint64(20) // more in make test-all

// Whatever is lost, late or killed, no more is granted than is booked, and no more is booked than the limit. When no caller was
// killed, as when the seed is odd, exactly what was granted is booked.
func TestLeasesNeverGrantMoreThanIsBooked(t *testing.T) {
	t.Parallel()
	for seed := range seeds {
		runInBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := &trial{random: rand.New(rand.NewPCG(seed, 0))}
			r.books = newLedger(int64(50+r.below(20_000)), money.MicroUSD(r.below(600_000)))
			r.books.fault = r.fault
			kills := seed%2 == 0
			var all sync.WaitGroup
			for i := range 1 + r.below(5) {
				all.Go(func() { r.process(t, kills && i%2 == 0) })
			}
			all.Wait()
			r.compare(t, kills)
		})
	}
}

func (r *trial) compare(t *testing.T, kills bool) {
	t.Helper()
	actions, value := r.books.check(t)
	granted, spent := r.granted.Load(), r.spent.Load()
	if granted > actions || spent > int64(value) {
		t.Errorf("%d actions and %d were granted, %d and %d are booked", granted, spent, actions, value)
	}
	if kills {
		return
	}
	open := r.books.openLeases()
	if open > r.unopened.Load() {
		t.Errorf("%d leases were never settled", open)
	}
	if open == 0 && (actions > granted+r.unknown.Load() || int64(value) > spent+r.doubted.Load()) {
		t.Errorf("%d and %d are booked, %d and %d were granted, %d and %d in doubt", actions, value, granted, spent, r.unknown.Load(), r.doubted.Load())
	}
}

// An answer that no service gives is not spent beyond what was asked for.
func TestAnOddGrantIsNotSpent(t *testing.T) {
	t.Parallel()
	const times = `,"created_at":"2026-11-21T09:00:00Z","expires_at":"2026-11-21T09:01:00Z"`
	for _, odd := range []struct {
		grant string
		local int // charges that it covers
	}{
		{`{"id":"l1","max_actions":16` + times + `}`, 16},
		{`{"id":"l1","max_actions":99999999999999` + times + `}`, 16},
		{`{"id":"l1","max_actions":-5` + times + `}`, 0},
		{`{"id":"","max_actions":16` + times + `}`, 0},
		{`{"id":"l1","max_actions":16}`, 0},
		{`{"id":"l1","max_actions":16,"created_at":"2026-11-21T09:01:00Z","expires_at":"2026-11-21T09:00:00Z"}`, 0},
		{`{}`, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &fake{react: issues(func(n int, r seen) reaction {
				switch {
				case r.path == "/v1/sessions/s1":
					return ok(`{"status":"active","max_actions":1000}`)
				case r.path == "/v1/sessions/s1/leases" && n == 1:
					return reaction{status: http.StatusCreated, body: odd.grant}
				default:
					return refusal(http.StatusServiceUnavailable, "unavailable")
				}
			})}
			session := newClient(t, server, client.Options{MaxAttempts: 1}).Agent("a1", "secret").Session("s1")
			lease, n := must(session.Lease(t.Context(), client.LeaseOptions{}))(t), 0
			for lease.Charge(t.Context(), client.Charge{}) == nil && n < 100 {
				n++
			}
			if n != odd.local {
				t.Errorf("%s: %d charges, want %d", odd.grant, n, odd.local)
			}
			lease.Kill()
		})
	}
}
