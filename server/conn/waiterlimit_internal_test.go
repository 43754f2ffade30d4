package conn

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/uuid"
)

func addressOf(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

// orgOf returns always the same id for the same number.
func orgOf(i int) uuid.UUID { return uuid.UUID{0: 1, 15: byte(i), 14: byte(i >> 8)} }

// taken holds what was taken, in order.
type taken struct {
	*WaiterLimit
	t    *testing.T
	held []*Slot
}

func acquired(t *testing.T, w *WaiterLimit, organization uuid.UUID, address netip.Addr) *Slot {
	t.Helper()
	return must(w.Acquire(organization, address))(t)
}

func (p *taken) take(n int, organization, address func(i int) int) {
	p.t.Helper()
	for i := range n {
		p.held = append(p.held, acquired(p.t, p.WaiterLimit, orgOf(organization(i)), addressOf(address(i))))
	}
}

// displaced returns which of the waiters have ended.
func (p *taken) displaced() (ended []int) {
	for i, held := range p.held {
		if held.ctx.Err() != nil {
			ended = append(ended, i)
		}
	}
	return ended
}

func always(n int) func(int) int    { return func(int) int { return n } }
func from0(i int) int               { return i }
func from100(i int) int             { return 100 + i }
func dividedBy(n int) func(int) int { return func(i int) int { return i / n } }

func TestPlacesToWaitAreSharedFairly(t *testing.T) {
	t.Parallel()
	type taking struct {
		n                     int
		organization, address func(int) int
	}
	for name, test := range map[string]struct {
		taken                 []taking
		organization, address int   // of the newcomer
		displaced             []int // one of these, or none
		err                   error
	}{
		"an organization has half": {[]taking{{8, always(1), from0}}, 1, 99, nil, ErrOwnWaiting},
		"an address has half":      {[]taking{{8, from0, always(1)}}, 99, 1, nil, ErrAddressWaiting},
		"a small one comes to two large organizations": {
			[]taking{{8, always(1), from0}, {7, always(2), from0}, {1, always(3), always(50)}}, 4, 99, []int{7}, nil},
		"a small one comes to two large addresses": {
			[]taking{{8, from0, always(1)}, {7, from100, always(2)}, {1, always(50), always(3)}}, 99, 4, []int{0, 1, 2, 3, 4, 5, 6, 7}, nil},
		"eight organizations at one address and one elsewhere": {
			[]taking{{8, always(90), from0}, {8, from0, always(91)}}, 99, 99, []int{8, 9, 10, 11, 12, 13, 14, 15}, nil},
		"a new organization at an address that has many": {
			[]taking{{8, always(90), from0}, {7, from0, always(91)}, {1, always(80), always(80)}}, 99, 91, nil, ErrManyWaiting},
		"a new organization at an address of which another organization has most": {
			[]taking{{6, always(1), always(1)}, {1, always(5), always(1)}, {4, always(2), from100}, {5, always(3), from100}}, 4, 1, []int{5}, nil},
		"all have one": {[]taking{{16, from0, from0}}, 99, 99, nil, ErrManyWaiting},
		"all have two, and one comes that has one": {
			[]taking{{2, always(90), always(90)}, {14, dividedBy(2), dividedBy(2)}}, 90, 90, nil, ErrManyWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &taken{WaiterLimit: NewWaiterLimit(16), t: t}
			for _, taking := range test.taken {
				p.take(taking.n, taking.organization, taking.address)
			}
			came, err := p.Acquire(orgOf(test.organization), addressOf(test.address))
			if err != test.err || err == nil && came.ctx.Err() != nil {
				t.Errorf("the newcomer hears %v, want %v", err, test.err)
			}
			ended := p.displaced()
			if len(ended) != min(len(test.displaced), 1) || len(ended) == 1 && !slices.Contains(test.displaced, ended[0]) {
				t.Errorf("displaced %v, want one of %v", ended, test.displaced)
			}
			for _, held := range p.held {
				held.Release()
				held.Release()
			}
			if err == nil {
				came.Release()
			}
			if p.Len() != 0 || len(p.slots.shares) != 0 || len(p.slots.all.within) != 0 {
				t.Errorf("%d are counted still: %+v", p.Len(), p.WaiterLimit)
			}
		})
	}
}

// One address, or a few organizations, come back as often as they like: others keep an equal share.
func TestAFloodAtOneAddressLeavesOthersTheirPlaces(t *testing.T) {
	t.Parallel()
	p := &taken{WaiterLimit: NewWaiterLimit(64), t: t}
	honest := make([]*Slot, 8)
	for i := range honest {
		honest[i] = acquired(t, p.WaiterLimit, orgOf(1000+i), addressOf(1000+i))
	}
	for i := range 1000 {
		_, _ = p.Acquire(orgOf(i%50), addressOf(i%4)) // fifty organizations at four addresses
	}
	for i := range 24 {
		acquired(t, p.WaiterLimit, orgOf(2000+i), addressOf(2000+i))
	}
	for i, held := range honest {
		if held.ctx.Err() != nil {
			t.Errorf("honest place %d was displaced", i)
		}
	}
	wantEqual(t, "waiters", p.Len(), 64)
}

// Requests of a trusted proxy without a forwarded address count for no client address.
func TestPlacesWithoutAnAddressCountForTheirOrganizationAlone(t *testing.T) {
	t.Parallel()
	w := NewWaiterLimit(4)
	for i := range 4 {
		acquired(t, w, orgOf(i), netip.Addr{})
	}
	if _, err := w.Acquire(orgOf(9), netip.Addr{}); err != ErrManyWaiting {
		t.Errorf("one more: %v", err)
	}
}
