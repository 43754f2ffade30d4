package redisclient

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"remit/internal/redisproc"
	"remit/test/redistest"
	"remit/test/suite"
)

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
	source = strings.NewReplacer("KEYS[", "KEYS[k + ", "ARGV[", "ARGV[v + ").Replace(source)
	return fmt.Sprintf("%slocal function one(k, v)\n%s\nend\nreturn run_each(one, %d, %d)", luaFile("include/run_each.lua"), source, keys, arguments)
}

func luaFile(path string) string {
	text, err := os.ReadFile("../../lua/" + path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var errOverLimit = &WritingRefusal{"the limit is reached"}

var testRefusals = Refusals{"over_limit": func(*Reply) error { return errOverLimit }}

var testMark = NewScript("mark_write", luaFile("kernel/mark_write.lua"), BestEffort)

var prefixes atomic.Int64

// openClient gives each test keys of its own.
func openClient(t *testing.T, cfg Config, url string) *Client {
	t.Helper()
	cfg.URL, cfg.Prefix, cfg.MarkWrite, cfg.Refusals = url, fmt.Sprintf("remit:test%d:", prefixes.Add(1)), testMark, testRefusals
	c := must(Open(cfg))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func openAgain(t *testing.T, c *Client) *Client {
	t.Helper()
	other := must(Open(c.config))(t)
	t.Cleanup(func() { _ = other.Close() })
	return other
}

type counter struct {
	c   *Client
	key string
}

func newCounter(c *Client) counter {
	return counter{c, c.config.Prefix + fmt.Sprintf("{%d}:count", prefixes.Add(1))}
}

func (n counter) add(ctx context.Context, f Flow) (int64, error) {
	return sumIn(n.c.Run(ctx, f, addScript, []string{n.key}, 1, 0))
}

func (n counter) read(ctx context.Context) (int64, error) {
	return sumIn(n.c.Run(ctx, Flow{}, readScript, []string{n.key}))
}

func sumIn(r *Reply, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.Number(0), r.Err
}

// inBatch is a call of RunAll that adds to the counter, up to a limit.
func (n counter) inBatch(by, limit int) *BatchCall {
	cmd := NewCommand(Flow{}, 1)
	cmd.Keys(n.key)
	cmd.Arguments(by, limit)
	return &BatchCall{Script: addScript, Command: cmd}
}

// runBatch runs calls by RunAll, and by themselves those that are to be.
func runBatch(ctx context.Context, c *Client, calls ...*BatchCall) {
	c.RunAll(ctx, calls, func(int) {}, func(ctx context.Context, i int) {
		calls[i].Reply, calls[i].Err = c.RunCommand(ctx, calls[i].Script, calls[i].Command)
	})
}

func (n counter) addInBatch(ctx context.Context) (int64, error) {
	call := n.inBatch(1, 0)
	runBatch(ctx, n.c, call)
	return sumIn(call.Reply, call.Err)
}

func loadScripts(t *testing.T, c *Client) {
	t.Helper()
	for _, source := range [][]byte{addScript.source, addScript.merged.source, readScript.source, readScript.merged.source, noScript.source} {
		suite.NoError(t, c.ForEachPrimary(t.Context(), func(ctx context.Context, server *redis.Client) error {
			return server.ScriptLoad(ctx, string(source)).Err()
		}))
	}
}

// crowd makes the client believe that so many calls are in flight that all share pipelines.
func crowd(t *testing.T, c *Client) {
	t.Helper()
	suite.NoError(t, c.ForEachPrimary(t.Context(), func(_ context.Context, server *redis.Client) error {
		p := c.pipeliners.of(server)
		p.inFlight.Add(unsharedCalls)
		p.confirmed.inFlight.Add(unsharedCalls)
		return nil
	}))
}

// aloneAndShared runs a test with calls that go by themselves, and with calls that share pipelines.
func aloneAndShared(t *testing.T, test func(t *testing.T, crowd func(*testing.T, *Client))) {
	for name, crowd := range map[string]func(*testing.T, *Client){"alone": func(*testing.T, *Client) {}, "shared": crowd} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, crowd)
		})
	}
}

// onEachOwn runs the test on both kinds of real Redis, each the test's own, with calls alone and shared.
func onEachOwn(t *testing.T, test func(t *testing.T, c *Client, node *redis.Client, crowd func(*testing.T, *Client))) {
	t.Helper()
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

func byItselfAndClustered(t *testing.T, test func(t *testing.T, cluster bool)) {
	t.Helper()
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cluster)
		})
	}
}

// holdConnections takes so many connections out of the client's pool, and opens those that there are not yet, until release.
func holdConnections(t *testing.T, client *redis.Client, connections int) (release func()) {
	t.Helper()
	held := make([]*redis.Conn, connections)
	for i := range held {
		held[i] = client.Conn()
		must(held[i].Ping(t.Context()).Result())(t)
	}
	return func() {
		for _, conn := range held {
			_ = conn.Close()
		}
	}
}

func must[T any](value T, err error) func(*testing.T) T { return redistest.Must(value, err) }

var (
	wantError  = redistest.WantError
	eventually = suite.Eventually
)

// watched adds a hook to the client's servers, before the first call.
func watched(c *Client, hook func(address string) redis.Hook) {
	switch client := c.redis.(type) {
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) { node.AddHook(hook(node.Options().Addr)) })
	case *redis.Client:
		client.AddHook(hook(client.Options().Addr))
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
