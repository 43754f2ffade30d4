package webhook

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/redisstore"
	"remit/test/redistest"
	"remit/test/suite"
)

// lifeline is an instance's way to Redis. It dies with the instance, at the instance's n-th command.
type lifeline struct {
	at    int64 // the command that ends it
	after bool  // that command still reaches Redis; only the reply does not come back
	life  context.Context
	end   func() // ends life

	commands atomic.Int64
}

// carry carries one connection until it or the lifeline ends.
func (l *lifeline) carry(client net.Conn, redis string) {
	defer client.Close()
	defer context.AfterFunc(l.life, func() { _ = client.Close() })()
	server, err := net.Dial("tcp", redis)
	if err != nil {
		return
	}
	var replies sync.WaitGroup
	replies.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil || !l.pass(client, server, buffer[:n]) {
			break
		}
	}
	_ = server.Close()
	replies.Wait()
}

// pass passes what is about one command on to Redis, unless the instance is dead.
func (l *lifeline) pass(client, server net.Conn, command []byte) bool {
	switch number := l.commands.Add(1); {
	case number < l.at:
		_, err := server.Write(command)
		return err == nil
	case number == l.at:
		_ = client.Close()
		if l.after {
			_, _ = server.Write(command)
			time.Sleep(5 * time.Millisecond) // so that it is read before the connection ends
		}
		l.end()
	}
	return false
}

// An instance that dies at any of its commands, before it or between it and its reply, loses no event: the next instance delivers
// what it has not, under the same ids. The receiver checks that an id stands for one event.
func TestNoEventIsLostAtWhateverStepAnInstanceDies(t *testing.T) {
	t.Parallel()
	const steps int64 = 24 // the last ones die idle, or waiting for a retry
	stride := int64(3)
	if suite.Long {
		stride = 1
	}
	for at := int64(1); at <= steps; at += stride {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %v", at, after), func(t *testing.T) {
				t.Parallel()
				r := newReceiver(t)
				r.refuses(func(n int64) bool { return n == 2 })
				o := newOrganizationWithHooks(t)
				o.unconfirmed(t, r.URL) // so that it begins with a test
				now := time.Now()
				o.redis.SetTime(now)
				life, end := context.WithCancel(t.Context())
				line := &lifeline{at: at, after: after, life: life, end: end}
				address := redistest.Serve(t, func(client net.Conn) { line.carry(client, o.redis.Addr()) })
				store := must(redisstore.Open(redisstore.Config{URL: "redis://" + address}))(t)
				t.Cleanup(func() { _ = store.Close() })
				stop := run(t, New(Config{Store: store, Log: slog.New(slog.DiscardHandler), AllowPrivate: true}))
				o.happen(t, 5)
				<-life.Done()
				stop()
				r.refuses(func(int64) bool { return false })
				// The term of the dead one has ended, and the retry is due. Time goes on: on a busy machine another retry may be needed.
				restarted := time.Now()
				goOn := func() { o.redis.SetTime(now.Add(time.Minute + time.Since(restarted))) }
				goOn()
				o.deliver(t)
				eventually(t, "all arrive, and nothing is left to look at", func() bool {
					goOn()
					return r.has(numbers(1, 5)...) && o.isQueueEmpty()
				})
			})
		}
	}
}
