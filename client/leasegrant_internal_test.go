package client

import (
	"sync"
	"testing"
	"time"

	"remit/money"
)

func testGrant(granted amount, until time.Duration) *grant {
	g := &grant{granted: granted, until: until}
	g.rest.Store(uint64(pack(granted)))
	return g
}

// The process may be stopped between any two instructions. What was taken after the expiry is granted to no one, and returned.
func TestAChargeTakenAfterTheExpiryIsNotGranted(t *testing.T) {
	t.Parallel()
	g := testGrant(amount{10, 1000}, time.Second)
	need := pack(amount{2, 300})
	if _, ok := g.charge(time.Now(), need, 1); !ok {
		t.Error("a charge in time was not granted")
	}
	if _, ok := g.charge(time.Now().Add(-time.Second), need, 1); ok {
		t.Error("a charge at the expiry was granted")
	}
	g.freeze()
	if u := g.usage(); u.all != (amount{2, 300}) || u.bySlot[1] != u.all {
		t.Errorf("%+v were charged", u.all)
	}
}

// Each part of a grant is used up exactly, at the largest size as at the smallest.
func TestAGrantIsTakenExactly(t *testing.T) {
	t.Parallel()
	largest := amount{maxGrantActions, maxGrantValue}
	for _, c := range []struct {
		granted, need amount
		want          int
	}{
		{amount{5, 0}, amount{1, 0}, 5},
		{amount{5, 10}, amount{1, 3}, 3},
		{amount{5, 10}, amount{2, 1}, 2},
		{largest, largest, 1},
		{largest, amount{1, maxGrantValue/2 + 1}, 1},
		{largest, amount{maxCount, maxGrantValue / 4}, 4},
		{amount{0, 10}, amount{1, 1}, 0},
		{amount{10, 0}, amount{1, 1}, 0},
	} {
		g := testGrant(c.granted, time.Hour)
		n := 0
		for ; n < 100; n++ {
			if _, ok := g.charge(time.Now(), pack(c.need), 0); !ok {
				break
			}
		}
		if n != c.want {
			t.Errorf("%+v was taken from %+v %d times, want %d", c.need, c.granted, n, c.want)
		}
		g.freeze()
		want := amount{c.need.actions * int64(n), c.need.value * money.MicroUSD(n)}
		if u := g.usage(); u.all != want || g.remaining() != c.granted.minus(want) {
			t.Errorf("%+v used, %+v left of %+v, want %+v used", u.all, g.remaining(), c.granted, want)
		}
	}
}

// The numbers of a settlement are final: each charge is in them or was not granted.
func TestAFrozenGrantHoldsExactlyTheChargesGranted(t *testing.T) {
	t.Parallel()
	for range 200 {
		g := testGrant(amount{1 << 20, 1 << 30}, time.Hour)
		var all sync.WaitGroup
		counts := make([]int64, 8)
		for i := range counts {
			all.Go(func() {
				for need := pack(amount{1, money.MicroUSD(i)}); ; counts[i]++ {
					if _, ok := g.charge(time.Now(), need, i); !ok {
						return
					}
				}
			})
		}
		time.Sleep(50 * time.Microsecond)
		g.freeze()
		u := g.usage()
		all.Wait()
		for i, n := range counts {
			if want := (amount{n, money.MicroUSD(n) * money.MicroUSD(i)}); u.bySlot[i] != want {
				t.Fatalf("slot %d holds %+v, %+v was granted", i, u.bySlot[i], want)
			}
		}
	}
}

// A charge that waits for a grant learns that all was settled meanwhile, and that none is coming.
func TestAWaitingChargeIsWokenWhenAllIsSettled(t *testing.T) {
	t.Parallel()
	l := newLease(&Session{id: "s1"}, LeaseOptions{})
	defer l.cancel()
	l.budget.see(amount{1000, 0}, 0)
	done, changed, err := l.tryGrants(Charge{})
	if done || changed == nil || err != nil {
		t.Fatal(done, changed, err)
	}
	l.mu.Lock()
	l.freezeAll()
	l.mu.Unlock()
	select {
	case <-changed:
	default:
		t.Error("it still waits")
	}
}

// What is held is room that no grant gets, whichever of the two limits is nearer.
func TestWhatRemainsLeavesOutWhatIsHeld(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		maxCommitted *money.MicroUSD
		want         money.MicroUSD
	}{
		{"no max_committed", nil, 60},
		{"max_committed is nearer", new(money.MicroUSD(80)), 20},
		{"max_value is nearer", new(money.MicroUSD(500)), 60},
	} {
		info := SessionInfo{MaxActions: 10, ActionCount: 4, MaxValue: 100, ValueUsed: 10, ValueHeld: 30, ValueCommitted: 30, MaxCommitted: test.maxCommitted}
		if left := info.remainder(); left != (amount{6, test.want}) {
			t.Errorf("%s: %+v remains", test.name, left)
		}
	}
}
