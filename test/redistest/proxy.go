package redistest

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"remit/internal/redisproc"
)

// Proxy stands between a client and a Redis: it can lose replies and delay requests, and go away and come back at the same address.
type Proxy struct {
	Address string // its own

	mu       sync.Mutex
	upstream string // a host and port, or the path of a socket
	listener net.Listener
	conns    map[net.Conn]bool
	marker   []byte // in requests whose replies are to be lost
	toLose   int
	seen     int    // Requests with the marker
	slow     []byte // in requests that wait before they are passed on
	wait     time.Duration

	serving sync.WaitGroup
	kept    int // a socket that reserves the port while the proxy does not listen; 0 for none
}

// NewProxy returns a proxy before the Redis at that address.
func NewProxy(t *testing.T, upstream string) *Proxy {
	t.Helper()
	p := &Proxy{Address: "127.0.0.1:0"}
	p.ComeUp(t, upstream)
	t.Cleanup(func() {
		p.GoDown()
		p.release()
	})
	return p
}

// LoseReplies loses the replies to the next n requests that hold the marker: it passes each request on, and closes the
// connection when the reply comes.
func (p *Proxy) LoseReplies(marker string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marker, p.toLose, p.seen = []byte(marker), n, 0
}

// Delay has each request that holds the marker wait before it is passed on, with what follows on its connection.
func (p *Proxy) Delay(marker string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow, p.wait = []byte(marker), wait
}

func (p *Proxy) waitOf(request []byte) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.slow) == 0 || !bytes.Contains(request, p.slow) {
		return 0
	}
	return p.wait
}

// Requests returns how many requests have held the marker.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// GoDown refuses new connections, and returns once all there were are closed.
func (p *Proxy) GoDown() {
	p.mu.Lock()
	_ = p.listener.Close()
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.serving.Wait()
	p.keepPort()
}

// keepPort takes the port without listening: dials are refused, and no other test gets the port meanwhile.
func (p *Proxy) keepPort() {
	p.release()
	at, err := net.ResolveTCPAddr("tcp", p.Address)
	if err != nil {
		return
	}
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return
	}
	syscall.CloseOnExec(socket)
	_ = syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) // its last connections linger
	if syscall.Bind(socket, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}) != nil {
		_ = syscall.Close(socket) // another was quicker
		return
	}
	p.kept = socket
}

func (p *Proxy) release() {
	if p.kept != 0 {
		_ = syscall.Close(p.kept)
		p.kept = 0
	}
}

// ComeUp accepts connections, again at the same address, and passes them on.
func (p *Proxy) ComeUp(t *testing.T, upstream string) {
	t.Helper()
	p.release()
	listener := Must(net.Listen("tcp", p.Address))(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Address, p.upstream = listener.Addr().String(), upstream
	p.listener, p.conns = listener, map[net.Conn]bool{}
	p.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(conn) })
		}
	})
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, ok := p.connect(client)
	if !ok {
		return
	}
	defer server.Close()
	lost := make(chan bool, 100) // holds something when the next reply is to be lost
	p.serving.Go(func() {
		defer server.Close()
		passOn(server, client, func(request []byte) bool {
			if p.loses(request) {
				lost <- true
			}
			time.Sleep(p.waitOf(request))
			return true
		})
	})
	passOn(client, server, func([]byte) bool { return len(lost) == 0 })
}

// connect connects to the Redis, unless the Proxy has gone down.
func (p *Proxy) connect(client net.Conn) (net.Conn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return nil, false
	}
	network := "tcp"
	if strings.HasPrefix(p.upstream, "/") {
		network = "unix"
	}
	server, err := net.Dial(network, p.upstream)
	if err != nil {
		return nil, false
	}
	p.conns[client], p.conns[server] = true, true
	return server, true
}

func (p *Proxy) loses(request []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marker) == 0 || !bytes.Contains(request, p.marker) {
		return false
	}
	p.seen++
	return p.seen <= p.toLose
}

// passOn copies what it reads until passes returns false. A command of these tests is one write, and so one read.
func passOn(to, from net.Conn, passes func([]byte) bool) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil || !passes(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// LeadTo passes new connections on to another Redis.
func (p *Proxy) LeadTo(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// Upstream returns the address of the Redis behind the proxy.
func (p *Proxy) Upstream() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upstream
}

// ProxiedURL returns the URL of a proxy before a real Redis of the test's own: a single one, or a cluster of one primary that
// announces the proxy's address as its own.
func ProxiedURL(t *testing.T, cluster bool) (url string, p *Proxy) {
	t.Helper()
	if !cluster {
		p := NewProxy(t, SocketOf(StartRedis(t, redisproc.Config{})))
		return "redis://" + p.Address, p
	}
	node := StartCluster(t, 1)[0]
	p = NewProxy(t, node)
	_, port, _ := net.SplitHostPort(p.Address)
	if err := PlainClient(t, "redis://"+node).ConfigSet(t.Context(), "cluster-announce-port", port).Err(); err != nil {
		t.Fatal(err)
	}
	return "redis+cluster://" + p.Address, p
}
