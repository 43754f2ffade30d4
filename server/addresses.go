package server

import (
	"net"
	"net/netip"
	"sync"
)

// ConnectionsOfOneAddress returns how many of a server's connections an address may have: three quarters, so that nobody
// alone can take every place. Behind a proxy all come from one address; that of a trusted proxy may have all.
func ConnectionsOfOneAddress(connections int) int { return max(connections*3/4, 1) }

// addresses counts the connections of each client address. An IPv6 address stands for its /64, as in clientAddress.
type addresses struct {
	trusted trustedProxies
	most    int

	mu    sync.Mutex
	count map[netip.Addr]int
}

func newAddresses(trusted trustedProxies, most int) *addresses {
	return &addresses{trusted: trusted, most: most, count: map[netip.Addr]int{}}
}

// countedAs returns the address that a connection counts for, and false when it does not count.
func (a *addresses) countedAs(conn net.Conn) (netip.Addr, bool) {
	peer, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	address := plain(peer.AddrPort().Addr())
	if a.trusted.include(address) {
		return netip.Addr{}, false
	}
	return ofClient(address), true
}

// enter counts one more, unless there are too many.
func (a *addresses) enter(address netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count[address] >= a.most {
		return false
	}
	a.count[address]++
	return true
}

func (a *addresses) leave(address netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count[address]--; a.count[address] == 0 {
		delete(a.count, address)
	}
}
