package redisclient

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"remit/internal/redisproc"
	"remit/test/redistest"
	"remit/test/suite"
)

// TestMain fails when a goroutine is left once all has ended.
func TestMain(m *testing.M) {
	suite.RunAtOnce(4)
	debug.SetGCPercent(400) // much is garbage soon, and little is kept
	goleak.VerifyTestMain(m)
}

// The scripts of these tests: a counter with a limit, 0 for none, and what reads it.
const (
	addSource = `
local sum = tonumber(redis.call('GET', KEYS[1]) or '0') + tonumber(ARGV[1])
if tonumber(ARGV[2]) > 0 and sum > tonumber(ARGV[2]) then return {'over_limit'} end
redis.call('SET', KEYS[1], sum)
return {'ok', tostring(sum)}`
	readSource = "return {'ok', redis.call('GET', KEYS[1]) or '0'}"
)

var (
	addScript  = NewScript("add", addSource, Writes).MergeAs(mergedSource(addSource, 1, 2), 1, 2)
	readScript = NewScript("read", readSource, Reads).MergeAs(mergedSource(readSource, 1, 0), 1, 0)
	noScript   = NewScript("nothing", "return {'ok'}", Writes)
)

// mergedSource does to a script of these tests what package lua does to the service's.
func mergedSource(source string, keys, arguments int) string {
	run, err := os.ReadFile("../../lua/include/run_each.lua")
	if err != nil {
		panic(err)
	}
	source = strings.NewReplacer("KEYS[", "KEYS[k + ", "ARGV[", "ARGV[v + ").Replace(source)
	return fmt.Sprintf("%slocal function one(k, v)\n%s\nend\nreturn run_each(one, %d, %d)", run, source, keys, arguments)
}

var errOverLimit = &WritingRefusal{"the limit is reached"}

var testRefusals = Refusals{"over_limit": func(*Reply) error { return errOverLimit }}

func markScript() *Script {
	source, err := os.ReadFile("../../lua/kernel/mark_write.lua")
	if err != nil {
		panic(err)
	}
	return NewScript("mark_write", string(source), BestEffort)
}

var testMark = markScript()

var prefixes atomic.Int64

// openClient gives each test keys of its own.
func openClient(t *testing.T, cfg Config, url string) *Client {
	t.Helper()
	cfg.URL, cfg.Prefix, cfg.MarkWrite, cfg.Refusals = url, fmt.Sprintf("remit:test%d:", prefixes.Add(1)), testMark, testRefusals
	c := must(Open(cfg))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// openAgain returns another client with the same configuration.
func openAgain(t *testing.T, c *Client) *Client {
	t.Helper()
	other := must(Open(c.config))(t)
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// counter is a key that add and read use.
type counter struct {
	c   *Client
	key string
}

func newCounter(c *Client) counter {
	return counter{c, c.config.Prefix + fmt.Sprintf("{%d}:count", prefixes.Add(1))}
}

// add adds 1 and returns the sum.
func (n counter) add(ctx context.Context, f Flow) (int64, error) {
	r, err := n.c.Run(ctx, f, addScript, []string{n.key}, 1, 0)
	if err != nil {
		return 0, err
	}
	return r.Number(0), r.Err
}

func (n counter) read(ctx context.Context) (int64, error) {
	r, err := n.c.Run(ctx, Flow{}, readScript, []string{n.key})
	if err != nil {
		return 0, err
	}
	return r.Number(0), r.Err
}

// addInBatch adds 1 by RunAll.
func (n counter) addInBatch(ctx context.Context) (int64, error) {
	cmd := func() *Command {
		cmd := NewCommand(Flow{}, 1)
		cmd.Keys(n.key)
		cmd.Arguments(1, 0)
		return cmd
	}
	call := &BatchCall{Script: addScript, Command: cmd()}
	n.c.RunAll(ctx, []*BatchCall{call}, func(int) {}, func(ctx context.Context, _ int) {
		call.Reply, call.Err = n.c.RunCommand(ctx, addScript, cmd())
	})
	if call.Err != nil {
		return 0, call.Err
	}
	return call.Reply.Number(0), call.Reply.Err
}

// loadScripts makes the scripts of these tests known to each server.
func loadScripts(t *testing.T, c *Client) {
	t.Helper()
	err := c.ForEachPrimary(t.Context(), func(ctx context.Context, server *redis.Client) error {
		for _, sc := range []*Script{addScript, readScript, noScript} {
			if err := server.ScriptLoad(ctx, sc.Source()).Err(); err != nil {
				return err
			}
			if sc.merged == nil {
				continue
			}
			if err := server.ScriptLoad(ctx, string(sc.merged.source)).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// crowd makes the client believe that so many calls are in flight that all share pipelines.
func crowd(t *testing.T, c *Client) {
	t.Helper()
	var mu sync.Mutex
	err := c.ForEachPrimary(t.Context(), func(_ context.Context, server *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		p := c.pipeliners.of(server)
		p.inFlight.Add(unsharedCalls)
		p.confirmed.inFlight.Add(unsharedCalls)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// aloneAndShared runs a test with calls that go by themselves, and with calls that share pipelines.
func aloneAndShared(t *testing.T, test func(t *testing.T, crowd func(*testing.T, *Client))) {
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		test(t, func(*testing.T, *Client) {})
	})
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		test(t, crowd)
	})
}

// onEachOwn runs the test on both kinds of real Redis, each the test's own, with calls alone and shared.
func onEachOwn(t *testing.T, test func(t *testing.T, c *Client, node *redis.Client, crowd func(*testing.T, *Client))) {
	t.Helper()
	redistest.SkipIfShort(t)
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Client)) {
		onRealRedis(t, Config{}, func(t *testing.T, c *Client, node *redis.Client) { test(t, c, node, crowd) })
	})
}

// onRealRedis runs the test on a real Redis and on a real cluster of one primary, each the test's own.
func onRealRedis(t *testing.T, cfg Config, test func(t *testing.T, c *Client, node *redis.Client)) {
	t.Helper()
	redistest.SkipIfShort(t)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		url := redistest.StartRedis(t, redisproc.Config{}).URL()
		test(t, openClient(t, cfg, url), redistest.PlainClient(t, url))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		node := redistest.StartCluster(t, 1)[0]
		test(t, openClient(t, cfg, "redis+cluster://"+node), redistest.PlainClient(t, "redis://"+node))
	})
}

// onEachProxy runs the test on both kinds of real Redis, each behind a proxy.
func onEachProxy(t *testing.T, test func(t *testing.T, c *Client, p *redistest.Proxy)) {
	t.Helper()
	redistest.SkipIfShort(t)
	byItselfAndClustered(t, func(t *testing.T, cluster bool) {
		url, p := redistest.ProxiedURL(t, cluster)
		test(t, openClient(t, Config{}, url), p)
	})
}

// byItselfAndClustered runs a test for a Redis by itself and for a cluster.
func byItselfAndClustered(t *testing.T, test func(t *testing.T, cluster bool)) {
	t.Helper()
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cluster)
		})
	}
}

// onEachPair runs a test on a pair by itself and on one that is a cluster, with calls by themselves and with shared ones.
func onEachPair(t *testing.T, test func(t *testing.T, p *redistest.Pair, crowd func(*testing.T, *Client))) {
	t.Helper()
	byItselfAndClustered(t, func(t *testing.T, cluster bool) {
		aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Client)) { test(t, redistest.StartPair(t, cluster), crowd) })
	})
}

// valueAt returns what the counter is at a server.
func (n counter) valueAt(t *testing.T, address string) int64 {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, MaxRetries: -1})
	defer client.Close()
	var count *redis.StringCmd
	_, _ = client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Do(t.Context(), "READONLY") // which lets a cluster's replica answer, and which others do not know
		count = p.Get(t.Context(), n.key)
		return nil
	})
	return must(count.Int64())(t)
}

// keepConnections leaves at least so many connections in the client's pool.
func keepConnections(t *testing.T, c *Client, connections int) {
	t.Helper()
	held := make([]*redis.Conn, connections)
	for i := range held {
		held[i] = c.redis.(*redis.Client).Conn()
		must(held[i].Ping(t.Context()).Result())(t)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
}

func must[T any](value T, err error) func(*testing.T) T { return redistest.Must(value, err) }

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	redistest.WantError(t, what, err, want)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	redistest.Eventually(t, what, condition)
}

// watched adds a hook to the client's servers, before the first call.
func watched(c *Client, hook func(address string) redis.Hook) {
	switch client := c.redis.(type) {
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) { node.AddHook(hook(node.Options().Addr)) })
	case *redis.Client:
		client.AddHook(hook(client.Options().Addr))
	}
}
