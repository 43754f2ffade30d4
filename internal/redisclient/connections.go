package redisclient

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// connections are a client's connections to its servers. Those that lead to a server that is no longer a primary are
// retired.
type connections struct {
	generation atomic.Int64
	retired    atomic.Int64 // when, in ns since 1970
}

// retirePause is the least time between two retirements: a Redis that stays a replica refuses every write.
const retirePause = 200 * time.Millisecond

var errRetired = errors.New("the connection leads to a server that is no primary any more")

// retire takes every existing connection out of use after its current command.
//
// go-redis closes a connection on which a replica refuses a write, but only when it says so in the first reply of a
// pipeline, and only that one: the others of its two pools would go on refusing writes while a primary is there.
func (c *connections) retire() {
	now, last := time.Now().UnixNano(), c.retired.Load()
	if now-last >= int64(retirePause) && c.retired.CompareAndSwap(last, now) {
		c.generation.Add(1)
	}
}

// retireAll is retire without its pause, for callers that did not learn of the change from a refusal.
func (c *connections) retireAll() { c.generation.Add(1) }

// dialer returns go-redis's own dialer, for connections that can be retired.
func (c *connections) dialer(options *redis.UniversalOptions) func(context.Context, string, string) (net.Conn, error) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: options.DialTimeout, TLSConfig: options.TLSConfig})
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		generation := c.generation.Load()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newConnection(conn, c, generation), nil
	}
}

type connection struct {
	net.Conn
	all        *connections
	generation int64           // of its making
	socket     syscall.RawConn // to see whether it is still open
}

func newConnection(conn net.Conn, all *connections, generation int64) *connection {
	c := &connection{conn, all, generation, unseen{}}
	if of, ok := conn.(syscall.Conn); ok {
		if socket, err := of.SyscallConn(); err == nil {
			c.socket = socket
		}
	}
	return c
}

// SyscallConn implements syscall.Conn. go-redis asks for it whenever it takes a connection out of its pool, to see whether
// it is still open, and drops the connection on an error.
func (c *connection) SyscallConn() (syscall.RawConn, error) {
	if c.generation != c.all.generation.Load() {
		return nil, errRetired
	}
	return c.socket, nil
}

// unseen is a connection that cannot be inspected, because TLS lies over it. It passes for healthy.
type unseen struct{}

func (unseen) Control(func(fd uintptr)) error    { return nil }
func (unseen) Read(func(fd uintptr) bool) error  { return nil }
func (unseen) Write(func(fd uintptr) bool) error { return nil }
