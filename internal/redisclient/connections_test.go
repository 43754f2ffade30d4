package redisclient

import (
	"context"
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
		"after a read in a shared pipeline": addAfterARead,
		"in a batch after what is refused":  addAfterARefusal,
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
			if sum := must(n.read(t.Context()))(t); sum != 6 {
				t.Errorf("the sum is %d, want 6", sum)
			}
		})
	}
}

// addAfterARead sends a read and a write in one pipeline, in this order.
func addAfterARead(t *testing.T, n counter) (err error) {
	t.Helper()
	atOnce(t, n.c, n.key,
		func(ctx context.Context) { wantError(t, "the read", second(n.read(ctx)), nil) },
		func(ctx context.Context) { err = second(n.add(ctx, Flow{})) })
	return err
}

// addAfterARefusal adds too much to one counter and then 1 to another, in one pipeline.
func addAfterARefusal(t *testing.T, n counter) error {
	t.Helper()
	refused, call := counter{n.c, n.key + "2"}.inBatch(2, 1), n.inBatch(1, 0)
	runBatch(t.Context(), n.c, refused, call)
	wantError(t, "what is refused", refused.Err, errOverLimit)
	return call.Err
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
	if n := c.generation.Load(); n != 1 {
		t.Errorf("they were made anew %d times in a moment", n)
	}
}
