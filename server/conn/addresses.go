package conn

import (
	"net"
	"net/netip"
	"sync"
)

// addressCounts counts the connections of each client address. Trusted proxies are not counted.
type addressCounts struct {
	trusted Proxies
	limit   int // connections of one address

	mu    sync.Mutex
	count map[netip.Addr]int
}

func newAddressCounts(trusted Proxies, limit int) *addressCounts {
	return &addressCounts{trusted: trusted, limit: limit, count: map[netip.Addr]int{}}
}

// countedAs returns the address that a connection counts for, and false when it is not counted.
func (a *addressCounts) countedAs(conn net.Conn) (netip.Addr, bool) {
	address := peerAddress(conn.RemoteAddr())
	if !address.IsValid() || a.trusted.Include(address) {
		return netip.Addr{}, false
	}
	return Aggregate(address), true
}

// add counts one more connection. It returns false when the address has reached its limit.
func (a *addressCounts) add(address netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count[address] >= a.limit {
		return false
	}
	a.count[address]++
	return true
}

func (a *addressCounts) remove(address netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count[address]--; a.count[address] == 0 {
		delete(a.count, address)
	}
}
