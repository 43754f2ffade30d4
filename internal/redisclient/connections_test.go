package redisclient

import (
	"context"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

// When a primary has become a replica and another server stands at its address, the connections that were made before
// still lead to it. The first write that is refused ends them all.
func TestNoWriteAfterTheFirstGoesToAPrimaryThatBecameAReplica(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(t *testing.T, n counter) error{
		"alone": func(t *testing.T, n counter) error { return second(n.add(t.Context(), Flow{})) },
		// go-redis heeds the first reply of a pipeline only, and here that is a read's.
		"after a read in a shared pipeline": func(t *testing.T, n counter) (err error) {
			atOnce(t, n.c, n.key,
				func(ctx context.Context) { wantError(t, "the read", second(n.read(ctx)), nil) },
				func(ctx context.Context) { err = second(n.add(ctx, Flow{})) })
			return err
		},
		"in a batch after what is refused": func(t *testing.T, n counter) error {
			refused, call := counter{n.c, n.key + "2"}.inBatch(2, 1), n.inBatch(1, 0)
			runBatch(t.Context(), n.c, refused, call)
			wantError(t, "what is refused", refused.Err, errOverLimit)
			return call.Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := redistest.StartRedis(t, redisproc.Config{}), redistest.StartRedis(t, redisproc.Config{})
			p := redistest.NewProxy(t, redistest.SocketOf(before))
			c := openClient(t, Config{}, "redis://"+p.Address)
			n := newCounter(c)
			for range 3 { // pools fill: of commands by themselves, and of pipelines
				wantError(t, "before", add(t, n), nil)
			}
			holdConnections(t, c.redis.(*redis.Client), 5)() // which stay in the pool
			c.role.stop()                                    // which would notice before the first write

			copyKeys(t, redistest.PlainClient(t, before.URL()), redistest.PlainClient(t, after.URL()))
			must(redistest.PlainClient(t, before.URL()).Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Result())(t)
			p.LeadTo(redistest.SocketOf(after))
			wantError(t, "the first", add(t, n), ErrUnavailable)
			for range 3 {
				wantError(t, "after the first", add(t, n), nil)
			}
			wantSums(t, []counter{n}, 6)
		})
	}
}

func copyKeys(t *testing.T, from, to *redis.Client) {
	t.Helper()
	for _, key := range must(from.Keys(t.Context(), "*").Result())(t) {
		content := must(from.Dump(t.Context(), key).Result())(t)
		must(to.Restore(t.Context(), key, 0, content).Result())(t)
	}
}

// A Redis that stays a replica refuses every write, and each refusal retires.
func TestConnectionsAreNotMadeAnewForEachRefusedWrite(t *testing.T) {
	t.Parallel()
	c := &connections{}
	for range 100 {
		c.retire()
	}
	wantEqual(t, "they were made anew in a moment, times", c.generation.Load(), 1)
}

// dialsInTheBackground says whether go-redis looks for a server that is away.
func dialsInTheBackground() bool {
	stacks := make([]byte, 4<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), ").tryDial(")
}

// go-redis dials a server that is away once a second, in the background. It stops within a second or two of Close, which does not
// wait for it: a program that stops should not. Not parallel, because other tests have servers that are away too.
func TestAClosedClientDialsNoMore(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	url := "redis://" + listener.Addr().String()
	must(0, listener.Close())(t)
	c := must(Open(Config{URL: url, Prefix: "remit:", MarkWrite: testMark}))(t)
	for range 2 * poolSize {
		if c.Ping(t.Context()) == nil {
			t.Fatal("a server listens")
		}
	}
	eventually(t, "it dials", dialsInTheBackground)
	must(0, c.Close())(t)
	eventually(t, "it dials no more", func() bool { return !dialsInTheBackground() })
}
