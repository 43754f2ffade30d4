package redisstore

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/redisproc"
)

// proxy stands between a store and a Redis: it can lose replies, and go away and come back at the same address.
type proxy struct {
	address string

	mu       sync.Mutex
	upstream string // a host and port, or the path of a socket
	listener net.Listener
	conns    map[net.Conn]bool
	marker   []byte // in requests whose replies are to be lost
	toLose   int
	seen     int // requests with the marker

	serving sync.WaitGroup
	kept    int // a socket that keeps the port while nobody listens at it; 0 for none
}

// newProxy returns a proxy before the Redis at that address.
func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	p := &proxy{address: "127.0.0.1:0"}
	p.comeUp(t, upstream)
	t.Cleanup(func() {
		p.goDown()
		p.release()
	})
	return p
}

// proxied returns a store that speaks to a real Redis of the test's own through a proxy: to a single one, or to a
// cluster of one primary that gives the proxy's address for its own.
func proxied(t *testing.T, cluster bool) (*Store, *proxy) {
	t.Helper()
	if !cluster {
		p := newProxy(t, socketOf(startRedis(t, redisproc.Config{})))
		return openStore(t, Config{}, "redis://"+p.address, nil), p
	}
	node := startCluster(t, 1)[0]
	p := newProxy(t, node)
	_, port, _ := net.SplitHostPort(p.address)
	client := plainClient(t, "redis://"+node)
	if err := client.ConfigSet(t.Context(), "cluster-announce-port", port).Err(); err != nil {
		t.Fatal(err)
	}
	return openStore(t, Config{}, "redis+cluster://"+p.address, nil), p
}

// onEachProxy runs the test on both kinds of real Redis, each behind a proxy.
func onEachProxy(t *testing.T, test func(t *testing.T, s *Store, p *proxy)) {
	t.Helper()
	skipIfShort(t)
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := proxied(t, cluster)
			test(t, s, p)
		})
	}
}

// startCluster runs a real cluster of the test's own and returns the addresses of its primaries.
func startCluster(t *testing.T, primaries int) []string {
	t.Helper()
	skipIfShort(t)
	cluster := must(redisproc.StartCluster(t.Context(), primaries))(t)
	t.Cleanup(func() { _ = cluster.Stop() })
	return cluster.Addrs()
}

func socketOf(server *redisproc.Server) string { return strings.TrimPrefix(server.URL(), "unix://") }

// loseReplies loses the replies to the next n requests that hold the marker: it passes each request on, and closes the
// connection when the reply comes.
func (p *proxy) loseReplies(marker string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marker, p.toLose, p.seen = []byte(marker), n, 0
}

// requests returns how many requests have held the marker.
func (p *proxy) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// goDown refuses new connections, and returns once all there were are closed.
func (p *proxy) goDown() {
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

// keepPort takes the port without listening: whoever dials is refused, and no other test gets it meanwhile.
func (p *proxy) keepPort() {
	p.release()
	at, err := net.ResolveTCPAddr("tcp", p.address)
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

func (p *proxy) release() {
	if p.kept != 0 {
		_ = syscall.Close(p.kept)
		p.kept = 0
	}
}

// comeUp accepts connections, again at the same address, and passes them on.
func (p *proxy) comeUp(t *testing.T, upstream string) {
	t.Helper()
	p.release()
	listener := must(net.Listen("tcp", p.address))(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address, p.upstream = listener.Addr().String(), upstream
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

func (p *proxy) serve(client net.Conn) {
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
			return true
		})
	})
	passOn(client, server, func([]byte) bool { return len(lost) == 0 })
}

// connect connects to the Redis, unless the proxy has gone down.
func (p *proxy) connect(client net.Conn) (net.Conn, bool) {
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

func (p *proxy) loses(request []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marker) == 0 || !bytes.Contains(request, p.marker) {
		return false
	}
	p.seen++
	return p.seen <= p.toLose
}

// passOn copies what is read, as long as it passes. A command of these tests is one write, and so one read.
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

func TestGoRedisLeftToItselfSendsAScriptAgainWhoseReplyWasLost(t *testing.T) {
	t.Parallel()
	p := newProxy(t, socketOf(startRedis(t, redisproc.Config{})))
	client := redis.NewClient(&redis.Options{Addr: p.address})
	defer client.Close()
	p.loseReplies("INCR", 2)
	count, err := client.Eval(t.Context(), "return redis.call('INCR', KEYS[1])", []string{"test:count"}).Int()
	if err != nil || count != 3 || p.requests() != 3 {
		t.Errorf("%d requests, count %d, %v: the tests of lost replies prove nothing any more", p.requests(), count, err)
	}
}
