package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"remit/redisstore"
	"remit/test/suite"
)

// lifeline is an instance's way to Redis. It dies with the instance, at the instance's n-th command.
type lifeline struct {
	net.Listener
	redis string
	at    int  // the command that ends it
	after bool // that command still reaches Redis; only the reply does not come back

	mu       sync.Mutex
	commands int
	open     []net.Conn
	dead     chan struct{}
}

func newLifeline(t *testing.T, redis string, at int, after bool) *lifeline {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &lifeline{Listener: listener, redis: redis, at: at, after: after, dead: make(chan struct{})}
	var under sync.WaitGroup
	under.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			under.Go(func() { l.carry(client) })
		}
	})
	t.Cleanup(func() {
		l.mu.Lock()
		l.end()
		l.mu.Unlock()
		under.Wait()
	})
	return l
}

// begin counts the commands from now on.
func (l *lifeline) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commands = 0
}

// end cuts all connections. The caller holds the lock.
func (l *lifeline) end() {
	select {
	case <-l.dead:
	default:
		close(l.dead)
		_ = l.Close()
	}
	for _, c := range l.open {
		_ = c.Close()
	}
}

// carry carries one connection until it or the lifeline ends.
func (l *lifeline) carry(client net.Conn) {
	server, err := net.Dial("tcp", l.redis)
	if err != nil {
		_ = client.Close()
		return
	}
	l.mu.Lock()
	l.open = append(l.open, client, server)
	l.mu.Unlock()
	var replies sync.WaitGroup
	replies.Go(func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil || !l.lives() {
				break
			}
			_, _ = client.Write(buffer[:n])
		}
		_ = client.Close()
	})
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil || !l.pass(server, buffer[:n]) {
			break
		}
	}
	_ = server.Close()
	replies.Wait()
}

func (l *lifeline) lives() bool {
	select {
	case <-l.dead:
		return false
	default:
		return true
	}
}

// pass passes what is about one command on to Redis, unless the instance is dead.
func (l *lifeline) pass(server net.Conn, command []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.commands++; l.commands >= l.at {
		if l.commands == l.at && l.after {
			_, _ = server.Write(command)
			time.Sleep(5 * time.Millisecond) // so that it is read before the connection ends
		}
		l.end()
		return false
	}
	_, err := server.Write(command)
	return err == nil
}

// An instance that dies at any of its commands, before it or between it and its reply, loses no event: the next instance delivers
// what it has not, under the same ids. The receiver checks that an id stands for one event.
func TestNoEventIsLostAtWhateverStepAnInstanceDies(t *testing.T) {
	t.Parallel()
	const steps = 24 // the last ones die idle, or waiting for a retry
	stride := 3
	if suite.Long {
		stride = 1
	}
	for at := 1; at <= steps; at += stride {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %v", at, after), func(t *testing.T) {
				t.Parallel()
				r := newReceiver(t)
				r.refuses(func(n int64) bool { return n == 2 })
				o := newOrganizationWithHooks(t)
				o.unconfirmed(t, r.URL) // so that it begins with a test
				now := time.Now()
				o.redis.SetTime(now)
				line := newLifeline(t, o.redis.Addr(), at, after)
				stop := o.deliverThrough(t, line)
				o.happen(t, 5)
				<-line.dead
				stop()
				r.refuses(func(int64) bool { return false })
				o.redis.SetTime(now.Add(time.Minute)) // the term of the dead one has ended, and the retry is due
				o.deliver(t)
				eventually(t, "all arrive", func() bool { return r.has(numbers(1, 5)...) })
				eventually(t, "nothing is left to look at", func() bool { return o.isQueueEmpty(t) })
			})
		}
	}
}

// deliverThrough runs an instance that reaches Redis by the lifeline alone, which counts its commands from here on.
func (o *organizationWithHooks) deliverThrough(t *testing.T, line *lifeline) (stop func()) {
	t.Helper()
	store := must(redisstore.Open(redisstore.Config{URL: "redis://" + line.Addr().String()}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var under sync.WaitGroup
	line.begin()
	d := New(Config{Store: store, Log: slog.New(slog.DiscardHandler), AllowPrivate: true})
	under.Go(func() { d.Run(ctx) })
	return func() {
		cancel()
		under.Wait()
		_ = store.Close()
	}
}
