package server_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"remit/internal/jwksfetch"
	"remit/internal/redisproc"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
	"remit/server/budgets"
	"remit/server/identity"
	"remit/server/internal/access"
	"remit/server/webhooks"
	"remit/test/suite"
)

// TestMain fails when a goroutine is left once all has ended. What go-redis prints of the outages that tests make is
// noise; and away from UTC, a time that is answered in local time shows.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	suite.RunAtOnce(4)
	debug.SetGCPercent(400) // much is garbage soon, and little is kept
	time.Local = time.FixedZone("away from UTC", 5*3600+1800)
	goleak.VerifyTestMain(tests{m},
		// fasthttp's clock of the Date header, one for the process, which never ends.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// What closes idle workers of a server of fasthttp: it sees that the server has ended after a sleep of 10 seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

type tests struct{ *testing.M }

// Run stops the real Redis that the tests share, and fails when all have run and an operation of openapi.json was never
// carried out.
func (m tests) Run() int {
	defer func() {
		if stopSharedRedis != nil {
			stopSharedRedis()
		}
	}()
	code := m.M.Run()
	awaitDials()
	if code == 0 && ranAll() && !everyOperationWasSeen() {
		return 1
	}
	return code
}

// awaitDials waits for what go-redis leaves when a server is away: it dials once a second, and sees then that its pool is closed. That is
// longer than goleak waits, and goleak learns what does not end.
func awaitDials() {
	stacks := make([]byte, 4<<20)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(").tryDial(")) {
			return
		}
	}
}

func ranAll() bool {
	given := func(name string) bool { return flag.Lookup(name).Value.String() != "" }
	return !testing.Short() && !given("test.run") && !given("test.skip") && !given("test.list") && !given("test.fuzz")
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var stopSharedRedis func()

// sharedRedis is started once, by the first test that asks.
var sharedRedis = sync.OnceValues(func() (string, error) {
	shared, err := redisproc.Start(context.Background(), redisproc.Config{})
	if err != nil {
		return "", err
	}
	stopSharedRedis = func() { _ = shared.Stop() }
	return shared.URL(), nil
})

// setup says on what a service runs. Of redis and prefix, the harness chooses what is left empty.
type setup struct {
	redis    string               // URL
	mini     *miniredis.Miniredis // that is at redis; nil for a real one
	prefix   string               // of every key: no test may see another's, and none may wipe a Redis
	store    redisstore.Config
	defaults budgets.SessionDefaults
	log      io.Writer // nil discards
	access   server.AccessLog
	proxies  []netip.Prefix
	hosts    access.ProofHosts
	limits   server.Limits // none is Off
	noKeys   bool          // the service is left without a keyring
	issuer   string        // "" is issuer
	tls      *tls.Config
	prepare  func(*server.Server) // before it serves

	organizations identity.Organizations
	keySets       jwksfetch.Config
}

// onEachRedis runs the test against a service on a real Redis and, in the long run, on miniredis; with -short on miniredis only. The
// test does not know which.
func onEachRedis(t *testing.T, test func(t *testing.T, api *client)) {
	t.Helper()
	onEachRedisWith(t, setup{}, test)
}

// onEachRedisWith is onEachRedis with settings of the test's own.
func onEachRedisWith(t *testing.T, with setup, test func(t *testing.T, api *client)) {
	t.Helper()
	if testing.Short() || suite.Long {
		t.Run("miniredis", func(t *testing.T) {
			t.Parallel()
			test(t, onMiniredis(t, with))
		})
	}
	if !testing.Short() {
		t.Run("redis", func(t *testing.T) {
			t.Parallel()
			test(t, onOneRedisWith(t, with))
		})
	}
}

// onBothRedis is onEachRedis with both in every run, for the first use of each part of the API. That a script does the same on both,
// the tests of the store show.
func onBothRedis(t *testing.T, test func(t *testing.T, api *client)) {
	t.Helper()
	onEachRedis(t, test)
	if !testing.Short() && !suite.Long {
		t.Run("miniredis", func(t *testing.T) {
			t.Parallel()
			test(t, onMiniredis(t, setup{}))
		})
	}
}

// onOneRedis is for what loads the machine: on a real Redis, with -short on miniredis.
func onOneRedis(t *testing.T) *client {
	t.Helper()
	return onOneRedisWith(t, setup{})
}

func onOneRedisWith(t *testing.T, with setup) *client {
	t.Helper()
	if testing.Short() {
		return onMiniredis(t, with)
	}
	with.redis = must(sharedRedis())(t)
	return start(t, with)
}

// onMiniredis is for what does not depend on the Redis.
func onMiniredis(t *testing.T, with setup) *client {
	t.Helper()
	mini := miniredis.RunT(t)
	with.redis, with.mini = "redis://"+mini.Addr(), mini
	return start(t, with)
}

// privateRedis is a real Redis that no other test uses.
func privateRedis(t *testing.T, arguments ...string) *redisproc.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real Redis")
	}
	private := must(redisproc.Start(t.Context(), redisproc.Config{Args: arguments}))(t)
	t.Cleanup(func() { _ = private.Stop() })
	return private
}

var prefixes atomic.Int64

// instance is one running service.
type instance struct {
	setup
	keyring *token.Keyring
	server  *server.Server
	kept    *redisstore.Store // that the server works on
	address string            // host:port
}

// start runs a service until the test ends, and returns a client of it.
func start(t *testing.T, with setup) *client {
	t.Helper()
	if with.prefix == "" {
		with.prefix = fmt.Sprintf("test%d:", prefixes.Add(1))
	}
	return run(t, &instance{setup: with, keyring: server.KeyringOf(t, cmp.Or(with.issuer, issuer))})
}

// another runs a second instance of the same service: same Redis, same keys.
func (c *client) another(t *testing.T) *client {
	t.Helper()
	return run(t, &instance{setup: c.on.setup, keyring: c.on.keyring})
}

func run(t *testing.T, on *instance) *client {
	t.Helper()
	config := on.store
	config.URL, config.Prefix = on.redis, on.prefix
	if on.limits == (server.Limits{}) {
		on.limits.Off = true
	}
	if config.UsageEvery == 0 {
		config.UsageEvery = time.Hour // tests count what is sent to Redis, and compare what it holds
	}
	store := must(redisstore.Open(config))(t)
	on.kept = store
	keySets := jwksfetch.New(on.keySets)
	on.server = server.New(server.Config{Store: store, Log: newLog(on.log), Defaults: on.defaults,
		KeySets: keySets, Webhooks: webhooks.Options{AllowPrivate: on.keySets.AllowPrivate},
		Limits: on.limits, TLS: on.tls, Organizations: on.organizations,
		AccessLog: on.access, TrustedProxies: on.proxies, ProofHosts: on.hosts})
	if on.prepare != nil {
		on.prepare(on.server)
	}
	server.HoldToDescription(t, on.server)
	if !on.noKeys {
		on.server.SetKeyring(on.keyring)
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	on.address = listener.Addr().String()
	transport := &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}
	served := make(chan error, 1)
	go func() { served <- on.server.Serve(listener) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		wantEqual(t, "shutdown", on.server.Shutdown(ctx), nil)
		wantEqual(t, "serve", <-served, nil)
		keySets.Close()
		_ = store.Close()
	})
	return &client{t: t, on: on, http: &http.Client{
		Transport: transport, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func newLog(to io.Writer) *slog.Logger {
	if to == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

const issuer = "remit-test"

// must is for calls that the test takes for granted: must(f())(t).
func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

// wantEqual fails the test unless the two are equal, and says what they are.
func wantEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

var eventually = suite.Eventually

type syncBuffer = server.LockedBuffer
