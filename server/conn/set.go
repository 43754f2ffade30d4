// Package conn accepts the TCP connections of an HTTP server and keeps track of them.
//
// A Set bounds how many connections are open, in all and for each client address, reads ahead so that an idle plain
// connection holds no buffer, ends connections of clients that do not speak HTTP, lets the peer read the last response before
// it closes, and stops without losing requests that have already arrived. Proxies finds the client behind trusted proxies.
//
// A Served connection holds the memory that its request and its response reserve in a Pool, which shares it fairly among
// tenants. A WaiterLimit does the same for requests that wait. A Drain announces that the server stops.
//
// The package knows TCP, X-Forwarded-For, and of fasthttp when it reads and writes. It knows no resource and no credential.
package conn

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Config says how a Set treats connections.
type Config struct {
	// Limit is how many connections may be open at once. Beyond it new ones are closed without a response.
	Limit int
	// LimitPerAddress is the same for one client address (an IPv6 /64), trusted proxies excepted.
	LimitPerAddress int
	// Proxies are not counted by address, because all clients behind one share it.
	Proxies Proxies
	// Opaque says that a layer above, such as TLS, encodes the bytes: nothing is read ahead, and no protocol is detected.
	Opaque bool
}

// Set is the open connections of a server with its listeners.
type Set struct {
	opaque          bool
	proxies         Proxies
	limit           int
	limitPerAddress int

	mu        sync.Mutex
	open      map[*Conn]struct{}
	counted   int                // those that are open, and those that are being closed
	byAddress map[netip.Addr]int // of these, without those of trusted proxies
	listeners []*accepting
	closing   bool
}

// NewSet returns a set without connections.
func NewSet(c Config) *Set {
	return &Set{
		opaque: c.Opaque, proxies: c.Proxies, limit: c.Limit, limitPerAddress: c.LimitPerAddress,
		open: map[*Conn]struct{}{}, byAddress: map[netip.Addr]int{},
	}
}

// Len returns how many connections are open.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// acquire counts an accepted connection. It returns nil when a limit is reached, else the function that uncounts it, which
// may be called more than once.
func (s *Set) acquire(accepted net.Conn) (release func()) {
	address := peerAddress(accepted.RemoteAddr())
	counts := address.IsValid() && !s.proxies.Include(address)
	address = Aggregate(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted >= s.limit || counts && s.byAddress[address] >= s.limitPerAddress {
		return nil
	}
	s.counted++
	if counts {
		s.byAddress[address]++
	}
	return sync.OnceFunc(func() { s.release(address, counts) })
}

func (s *Set) release(address netip.Addr, counts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted--
	if !counts {
		return
	}
	if s.byAddress[address]--; s.byAddress[address] == 0 {
		delete(s.byAddress, address)
	}
}

func (s *Set) add(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

func (s *Set) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// accepting is a listener of the set. Its address identifies it: a net.Listener may be of a type that cannot be compared.
type accepting struct{ net.Listener }

func (s *Set) addListener(l net.Listener) *accepting {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &accepting{l}
	s.listeners = append(s.listeners, added)
	if s.closing { // StopAccepting came first
		added.wake()
	}
	return added
}

func (s *Set) removeListener(ended *accepting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(s.listeners, func(l *accepting) bool { return l == ended })
}

func (s *Set) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}
