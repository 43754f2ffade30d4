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
		"alone": func(t *testing.T, n counter) error {
			_, err := n.add(t.Context(), Flow{})
			return err
		},
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
			keepConnections(t, c, 5)
			c.role.stop() // which would notice before the first write

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
func addAfterARead(t *testing.T, n counter) error {
	t.Helper()
	l := n.c.pipeliners.of(n.c.redis.(*redis.Client))
	l.inFlight.Add(unsharedCalls)
	defer l.inFlight.Add(-unsharedCalls)
	eventually(t, "the last pipeline ends", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.pipelines > 0 {
			return false
		}
		l.pipelines = maxPipelines // all that may be in flight: every call waits
		return true
	})
	read, added := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := n.read(context.Background())
		read <- err
	}()
	eventually(t, "the read waits", func() bool { return l.howMany() == 1 })
	go func() {
		_, err := n.add(context.Background(), Flow{})
		added <- err
	}()
	eventually(t, "the write waits", func() bool { return l.howMany() == 2 })
	l.sendAll()
	l.mu.Lock()
	l.pipelines -= maxPipelines - 1 // sendAll ended one
	l.mu.Unlock()
	wantError(t, "the read", <-read, nil)
	return <-added
}

// addAfterARefusal adds too much to one counter and then 1 to another, in one pipeline.
func addAfterARefusal(t *testing.T, n counter) error {
	t.Helper()
	call := func(key string, by, limit int) *BatchCall {
		cmd := NewCommand(Flow{}, 1)
		cmd.Keys(key)
		cmd.Arguments(by, limit)
		return &BatchCall{Script: addScript, Command: cmd}
	}
	calls := []*BatchCall{call(n.key+"2", 2, 1), call(n.key, 1, 0)}
	n.c.RunAll(t.Context(), calls, func(int) {}, func(ctx context.Context, i int) {
		calls[i].Reply, calls[i].Err = n.c.RunCommand(ctx, calls[i].Script, calls[i].Command)
	})
	wantError(t, "what is refused", calls[0].Err, errOverLimit)
	return calls[1].Err
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
