package redisstore

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/internal/redisproc"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

func serverOf(t *testing.T, s *Store, key string) *redis.Client {
	t.Helper()
	if cluster, ok := s.client.Redis().(*redis.ClusterClient); ok {
		return must(cluster.MasterForKey(t.Context(), key))(t)
	}
	return s.client.Redis().(*redis.Client)
}

// anotherInstance returns a store on the same keys, as another instance of the service has one.
func anotherInstance(t *testing.T, s *Store, durability ...Durability) *Store {
	t.Helper()
	cfg := s.config
	if len(durability) > 0 {
		cfg.Durability = durability[0]
	}
	second := must(Open(cfg))(t)
	t.Cleanup(func() { _ = second.Close() })
	return second
}

// withOwnRedis returns a store on a real Redis of the test's own, and a client of that.
func withOwnRedis(t *testing.T, cfg Config) (*Store, *redis.Client) {
	t.Helper()
	server := redistest.StartRedis(t, redisproc.Config{})
	return openStore(t, cfg, server.URL(), nil), redistest.PlainClient(t, server.URL())
}

// proxied returns a store that speaks through a proxy to a real Redis of the test's own.
func proxied(t *testing.T, cluster bool) (*Store, *redistest.Proxy) {
	t.Helper()
	url, p := redistest.ProxiedURL(t, cluster)
	return openStore(t, Config{}, url, nil), p
}

// onEachProxy runs the test on both kinds of real Redis, each behind a proxy, in parallel with other tests.
func onEachProxy(t *testing.T, test func(t *testing.T, s *Store, p *redistest.Proxy)) {
	t.Helper()
	t.Parallel()
	eachProxy(t, test)
}

// eachProxy is onEachProxy for a test that is parallel itself.
func eachProxy(t *testing.T, test func(t *testing.T, s *Store, p *redistest.Proxy)) {
	t.Helper()
	redistest.SkipIfShort(t)
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := proxied(t, cluster)
			test(t, s, p)
		})
	}
}

// wantLost checks what a call returns whose replies are lost to requests that hold the marker, and returns how many such requests
// there were: at least one.
func wantLost(t *testing.T, what string, p *redistest.Proxy, marker string, call func() error, want error) (requests int) {
	t.Helper()
	p.LoseReplies(marker, 100)
	defer p.LoseReplies("", 0)
	wantError(t, what, call(), want)
	if requests = p.Requests(); requests == 0 {
		t.Errorf("%s: no reply was lost", what)
	}
	return requests
}

func pairStore(t *testing.T, p *redistest.Pair, d Durability) *Store {
	t.Helper()
	return openStore(t, Config{Durability: d}, p.URL, nil)
}

// concurrently does something so many times at once, and returns when all have ended.
func concurrently(t *testing.T, times int, do func(i int)) {
	t.Helper()
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() { do(i) })
	}
	redistest.WaitAtMost(t, time.Minute, &all)
}

// pipelineHook handles pipelines, with or without the next hook.
type pipelineHook func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error

func (pipelineHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (pipelineHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h pipelineHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error { return h(ctx, commands, next) }
}

// aloneAndShared runs a test with calls that go by themselves, and with calls that share pipelines, in parallel with other tests.
func aloneAndShared(t *testing.T, test func(t *testing.T, crowd func(*testing.T, *Store))) {
	t.Parallel()
	for name, crowd := range map[string]func(*testing.T, *Store){"alone": func(*testing.T, *Store) {}, "shared": crowd} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, crowd)
		})
	}
}

// crowdSize is how many calls package redisclient sends by themselves before others share pipelines.
const crowdSize = 8

var (
	crowdReads  = redisclient.NewScript("crowd", "return {'ok'}", reads)
	crowdWrites = redisclient.NewScript("crowd", "return {'ok'}", writes)
)

// crowd keeps so many calls in flight to each server that all others share pipelines: of those that must be confirmed, and of
// the others. The calls are held before they reach Redis, until the test ends.
func crowd(t *testing.T, s *Store) {
	t.Helper()
	hook := &holdingHook{release: make(chan struct{})}
	var calls sync.WaitGroup
	t.Cleanup(func() {
		close(hook.release)
		calls.Wait()
	})
	hold := func(key string, script *script) {
		var held atomic.Bool
		ctx := context.WithValue(context.Background(), heldKey{}, &held)
		calls.Go(func() {
			for !held.Load() { // else it shared a pipeline itself
				_, _ = s.client.Run(ctx, kernel.OwnFlow, script, []string{key})
			}
		})
		eventually(t, "the call is held", held.Load)
	}
	mustDo(t, s.client.ForEachPrimary(t.Context(), func(_ context.Context, server *redis.Client) error {
		server.AddHook(hook)
		key := ""
		for i := 0; key == "" || serverOf(t, s, key) != server; i++ {
			key = s.keys.Prefix + "crowd:" + strconv.Itoa(i)
		}
		for range crowdSize {
			hold(key, crowdReads)
			if s.config.Durability == Replicated {
				hold(key, crowdWrites)
			}
		}
		return nil
	}))
}

// holdingHook holds the calls whose context has a heldKey.
type holdingHook struct{ release chan struct{} }

type heldKey struct{}

var errReleased = errors.New("the call was held until the test had ended")

func (h *holdingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *holdingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.pass(ctx, func() error { return next(ctx, cmd) }, cmd)
	}
}

func (h *holdingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.pass(ctx, func() error { return next(ctx, cmds) }, cmds...)
	}
}

// pass makes a call, or holds it and lets it fail.
func (h *holdingHook) pass(ctx context.Context, call func() error, cmds ...redis.Cmder) error {
	held, marked := ctx.Value(heldKey{}).(*atomic.Bool)
	if !marked {
		return call()
	}
	held.Store(true)
	<-h.release
	for _, cmd := range cmds {
		cmd.SetErr(errReleased)
	}
	return errReleased
}

// onEachPair runs a test on a pair by itself and on one that is a cluster, with calls by themselves and with shared ones.
func onEachPair(t *testing.T, test func(t *testing.T, p *redistest.Pair, crowd func(*testing.T, *Store))) {
	t.Helper()
	t.Parallel()
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
				test(t, redistest.StartPair(t, cluster), crowd)
			})
		})
	}
}

// idOfAge returns an id in the cell that was drawn so long ago.
func idOfAge(cell uint16, age time.Duration) uuid.UUID {
	id := kernel.IDIn(cell)
	ms := time.Now().Add(-age).UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}

// storeFiles are the Go files of the store and its rooms that are no tests.
func storeFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, room := range []string{"", "records", "webhooks", "internal/feed", "internal/kernel"} {
		found := must(filepath.Glob(filepath.Join(room, "*.go")))(t)
		if len(found) == 0 {
			t.Fatalf("%q has no files", room)
		}
		files = append(files, found...)
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}
