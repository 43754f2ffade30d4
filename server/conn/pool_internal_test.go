package conn

import (
	"errors"
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/google/uuid"
)

var (
	errTestFull = errors.New("full")
	errTestHalf = errors.New("half")
)

// testPool counts who is displaced. Its holders are named by a letter, and an organization at an address by two.
type testPool struct {
	*Pool
	displaced map[string]int
}

func newTestPool(most int) testPool {
	return testPool{NewPool(most, errTestFull, errTestHalf), map[string]int{}}
}

var poolStart = time.Unix(1_800_000_000, 0)

func (p testPool) take(name string, bytes int, after time.Duration) (*Reservation, error) {
	holders := []Tenant{tenantNamed(name[len(name)-1:])}
	if len(name) > 1 {
		holders = []Tenant{{Organization: uuid.UUID{name[0]}}, holders[0]}
	}
	return p.Reserve(bytes, poolStart.Add(after), func() { p.displaced[name]++ }, holders...)
}

func (p testPool) wantEmpty(t *testing.T) {
	t.Helper()
	if p.all.size != 0 || len(p.shares) != 0 || p.all.order.Len() != 0 || len(p.all.within) != 0 {
		t.Errorf("%d bytes, %d holders and %d places are left", p.all.size, len(p.shares), p.all.order.Len())
	}
}

func tenantNamed(name string) Tenant {
	return Tenant{Address: netip.AddrFrom4([4]byte{127, 0, 0, name[0]})}
}

func TestAPoolServesTheClientThatHoldsLess(t *testing.T) {
	t.Parallel()
	type step struct {
		name  string
		bytes int
		after time.Duration
		want  error
	}
	for name, test := range map[string]struct {
		steps     []step
		displaced map[string]int
	}{
		"no tenant gets more than half": {[]step{{"a", 30, 0, nil}, {"a", 20, 0, nil}, {"a", 1, 0, errTestHalf}}, nil},
		"two fill it":                   {[]step{{"a", 50, 0, nil}, {"b", 50, 0, nil}}, nil},
		"a third displaces the first":   {[]step{{"a", 30, 0, nil}, {"a", 20, 0, nil}, {"b", 49, 0, nil}, {"c", 10, 0, nil}}, map[string]int{"a": 1}},
		"equals do not displace":        {[]step{{"a", 34, 0, nil}, {"b", 33, 0, nil}, {"c", 33, 0, nil}, {"d", 34, 0, errTestFull}}, nil},
		"equals displace the old": {
			[]step{{"a", 34, 0, nil}, {"b", 33, 0, nil}, {"c", 33, 0, nil}, {"d", 34, graceTime + 1, nil}}, map[string]int{"a": 1},
		},
		"the largest displaces nothing young": {[]step{{"a", 40, 0, nil}, {"b", 40, 0, nil}, {"c", 20, 0, nil}, {"a", 5, 0, errTestFull}}, nil},
		"many small places make room for one": {
			[]step{{"a", 10, 0, nil}, {"a", 10, 0, nil}, {"a", 10, 0, nil}, {"a", 10, 0, nil}, {"b", 50, 0, nil}, {"c", 25, 0, nil}},
			map[string]int{"b": 1},
		},
		"organizations at one address share its half": {[]step{
			{"az", 20, 0, nil}, {"az", 20, 0, nil}, {"bz", 10, 0, nil}, // the address has its half
			{"az", 1, 0, errTestHalf},          // no tenant there holds more than a
			{"cz", 10, 0, nil},                 // a gives way
			{"cz", 15, 0, errTestHalf},         // c would hold more than a does now
			{"cz", 15, graceTime + 1, nil},     // but what is old gives way to any tenant
			{"bz", 60, graceTime, errTestHalf}, // no tenant gets more than half of all
			{"y", 50, 0, nil},                  // another address
		}, map[string]int{"az": 2}},
		"an answer counts for its organization and for its client's address": {
			[]step{{"ax", 30, 0, nil}, {"bx", 30, 0, errTestHalf}, {"ay", 30, 0, errTestHalf}, {"by", 30, 0, nil}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestPool(100)
			for i, s := range test.steps {
				if _, err := p.take(s.name, s.bytes, s.after); err != s.want {
					t.Errorf("step %d: %v, want %v", i, err, s.want)
				}
			}
			if !maps.Equal(p.displaced, test.displaced) {
				t.Errorf("displaced %v, want %v", p.displaced, test.displaced)
			}
		})
	}
}

func TestAPlaceIsReleasedExactlyOnce(t *testing.T) {
	t.Parallel()
	p := newTestPool(100)
	one, _ := p.take("a", 40, 0)
	two, _ := p.take("b", 50, 0)
	if err := one.Resize(60, poolStart); err != errTestHalf || one.size != 40 {
		t.Errorf("resized beyond half: %v, %d bytes", err, one.size)
	}
	must(0, one.Resize(50, poolStart))(t)
	two.Pin()
	if _, err := p.take("c", 60, 0); err != errTestHalf {
		t.Error(err)
	}
	three, err := p.take("c", 20, 0) // of a, for b's is settled
	if err != nil || p.displaced["a"] != 1 || p.displaced["b"] != 0 {
		t.Errorf("%v, displaced %v", err, p.displaced)
	}
	wantEqual(t, "a displaced place was resized", one.Resize(1, poolStart), errTestFull)
	if !one.Release() || two.Release() || three.Release() || two.Release() || (*Reservation)(nil).Release() {
		t.Error("release does not say which place was displaced")
	}
	p.wantEmpty(t)
}

// A stream that waits for events keeps its place without bytes, while others of its tenant come and go.
func TestAPlaceWithoutBytesOutlivesTheOthersOfItsHolder(t *testing.T) {
	t.Parallel()
	p := newTestPool(100)
	waiting, _ := p.take("a", 40, 0)
	other, _ := p.take("a", 10, 0)
	must(0, waiting.Resize(0, poolStart))(t)
	other.Release()
	if err := waiting.Resize(40, poolStart); err != nil || p.shares[tenantNamed("a")].order.Len() != 1 {
		t.Errorf("%v; it cannot be displaced any more", err)
	}
	must(0, waiting.Resize(0, poolStart))(t)
	waiting.Release()
	p.wantEmpty(t)
}
