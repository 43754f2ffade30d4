package redisstore

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"remit/internal/redisproc"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
	"remit/test/suite"
)

// TestMain fails when a goroutine is left once all has ended.
func TestMain(m *testing.M) {
	suite.RunAtOnce(4)
	pruneTime = time.Minute
	debug.SetGCPercent(400) // much is garbage soon, most of it miniredis's
	goleak.VerifyTestMain(tests{m})
}

type tests struct{ *testing.M }

// Run stops the real servers that the tests of this package started.
func (m tests) Run() int {
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	return m.M.Run()
}

var (
	stopsLock sync.Mutex
	stops     []func()
)

func stopAtTheEnd(stop func()) {
	stopsLock.Lock()
	defer stopsLock.Unlock()
	stops = append(stops, stop)
}

// Servers that many tests share. Each is started once, by the first test that asks. Those of tests that make Redis forget its
// scripts are their own, because other tests see whether a script was sent once.
var (
	realRedis, realCluster           = sync.OnceValues(startRealRedis), sync.OnceValues(startRealCluster)
	forgetfulRedis, forgetfulCluster = sync.OnceValues(startRealRedis), sync.OnceValues(startRealCluster)
)

func startRealRedis() (string, error) {
	server, err := redisproc.Start(context.Background(), redisproc.Config{})
	if err != nil {
		return "", err
	}
	stopAtTheEnd(func() { _ = server.Stop() })
	return server.URL(), nil
}

func startRealCluster() (string, error) {
	cluster, err := redisproc.StartCluster(context.Background(), 3)
	if err != nil {
		return "", err
	}
	stopAtTheEnd(func() { _ = cluster.Stop() })
	return cluster.URL(), nil
}

var prefixes atomic.Int64

// onEachRedis runs the test on a real Redis and, in the long run, also on miniredis and on a real Redis Cluster of three primaries;
// with -short on miniredis only. The test does not know which; cfg needs no URL and no prefix. It runs in parallel with other tests.
func onEachRedis(t *testing.T, cfg Config, test func(t *testing.T, s *Store)) {
	t.Helper()
	t.Parallel()
	eachRedis(t, cfg, test)
}

// eachRedis is onEachRedis for a test that is parallel itself.
func eachRedis(t *testing.T, cfg Config, test func(t *testing.T, s *Store)) {
	t.Helper()
	if testing.Short() || suite.Long {
		onMiniredis(t, cfg, test)
	}
	if !testing.Short() {
		onRealRedis(t, cfg, test)
	}
}

// onEachRedisAndCluster is onEachRedis with all three in every run. What runs every operation is to be on it: the model, what
// is behind a proxy (onEachProxy), and what has a replica (onEachPair).
func onEachRedisAndCluster(t *testing.T, cfg Config, test func(t *testing.T, s *Store)) {
	t.Helper()
	onEachRedis(t, cfg, test)
	if !testing.Short() && !suite.Long {
		onMiniredis(t, cfg, test)
		onCluster(t, cfg, test)
	}
}

// onRealRedis is onEachRedis without miniredis, in which no key expires by itself.
func onRealRedis(t *testing.T, cfg Config, test func(t *testing.T, s *Store)) {
	t.Helper()
	redistest.SkipIfShort(t)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, openLeastPrivileged(t, cfg, realRedis))
	})
	if suite.Long {
		onCluster(t, cfg, test)
	}
}

// onRealRedisAndCluster is onRealRedis with a Redis Cluster in every run.
func onRealRedisAndCluster(t *testing.T, cfg Config, test func(t *testing.T, s *Store)) {
	t.Helper()
	onRealRedis(t, cfg, test)
	if !testing.Short() && !suite.Long {
		onCluster(t, cfg, test)
	}
}

func onMiniredis(t *testing.T, cfg Config, test func(t *testing.T, s *Store)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, openStore(t, cfg, "redis://"+miniredis.RunT(t).Addr(), nil))
	})
}

func onCluster(t *testing.T, cfg Config, test func(t *testing.T, s *Store)) {
	t.Helper()
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, openLeastPrivileged(t, cfg, realCluster))
	})
}

func openLeastPrivileged(t *testing.T, cfg Config, server func() (string, error)) *Store {
	t.Helper()
	url, err := server()
	if err == nil {
		url, err = asLeastPrivileged(t.Context(), url)
	}
	return openStore(t, cfg, url, err)
}

// openStore gives each test keys of its own: no test may wipe a Redis.
func openStore(t *testing.T, cfg Config, url string, err error) *Store {
	t.Helper()
	if err != nil {
		t.Fatalf("no real Redis to test on: %v", err)
	}
	cfg.URL, cfg.Prefix = url, fmt.Sprintf("remit:test%d:", prefixes.Add(1))
	store := must(Open(cfg))(t)
	t.Cleanup(func() {
		closePeek(store)
		_ = store.Close()
	})
	return store
}

// tenant is an organization with one agent that has one session.
type tenant struct {
	key     APIKey
	agent   Agent
	secret  [32]byte
	session Session
	asked   uuid.UUID // a pending request for more, of some tests
	other   uuid.UUID // another API key, of everyOperation
	opener  uuid.UUID // a session key, of everyOperation

	delegation NewDelegation // by another agent, of everyOperation
	trusted    TrustedIssuer // of everyOperation
}

func newOrganization(t *testing.T, s *Store) APIKey {
	t.Helper()
	key := APIKey{Organization: NewRootID(), Hash: [32]byte{1}}
	must(s.CreateOrganization(t.Context(), "", key, "acme", "", nil))(t)
	return key
}

func newTenant(t *testing.T, s *Store, n NewSession) tenant {
	t.Helper()
	w := tenant{key: newOrganization(t, s), secret: [32]byte{2}}
	w.agent = must(s.CreateAgent(t.Context(), w.key, Agent{Name: "scout", Scopes: []string{"read", "write"}}, w.secret, nil))(t)
	n.Agent, n.Lifetime = w.agent.ID, cmp.Or(n.Lifetime, time.Hour)
	w.session = must(s.CreateSession(t.Context(), w.key, n))(t)
	return w
}

func (w tenant) byKey() Caller { return Caller{Key: &w.key} }

func (w tenant) exchange(t *testing.T, s *Store) Grant {
	t.Helper()
	return must(s.ExchangeSecret(context.Background(), w.agent.ID, w.secret, GrantRequest{}))(t)
}

// byToken is the agent itself, with the access token of a grant.
func byToken(g Grant) Caller { return Caller{Token: &g.AccessToken} }

// newSession creates a further session of the tenant's agent, with room for 100 actions and 100 USD.
func (w tenant) newSession(t *testing.T, s *Store, lifetime time.Duration) Session {
	t.Helper()
	return must(s.CreateSession(t.Context(), w.key,
		NewSession{Agent: w.agent.ID, MaxActions: 100, MaxValue: 100 * money.USD, Lifetime: lifetime}))(t)
}

// waitUntil returns when the tenant's session has the status.
func (w tenant) waitUntil(t *testing.T, s *Store, status Status) {
	t.Helper()
	eventually(t, "the session is "+string(status), func() bool {
		return must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Status == status
	})
}

// contents is all that Redis holds of the tenant: to compare before with after.
func (w tenant) contents(t *testing.T, s *Store) map[string]any {
	t.Helper()
	o := w.key.Organization
	return contents(t, s, s.keys.Organization(o), s.keys.OrganizationAgents(o), s.keys.OrganizationOpen(o),
		s.keys.OrganizationClosed(o), s.keys.Agent(w.agent.ID), s.keys.AgentSessions(w.agent.ID),
		s.keys.Session(w.agent.ID, w.session.ID), s.keys.OrganizationBudget(o), s.keys.Reservations(o),
		s.keys.Parts(w.agent.ID, w.session.ID), s.keys.Leases(w.agent.ID, w.session.ID), s.keys.SessionRequests(w.agent.ID, w.session.ID),
		s.keys.Webhooks(o), s.keys.WebhookProgress(o), s.keys.TrustedIssuers(o), s.keys.IssuerNames(o), s.keys.AgentTransactions(w.agent.ID), s.keys.UsageDays(w.agent.ID))
}

// contents returns what the keys hold.
func contents(t *testing.T, s *Store, keys ...string) map[string]any {
	t.Helper()
	ctx, kinds, values := t.Context(), make([]*redis.StatusCmd, len(keys)), make([]redis.Cmder, len(keys))
	must(peek(t, s).Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			kinds[i] = p.Type(ctx, key)
		}
		return nil
	}))(t)
	_, err := peek(t, s).Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			switch kinds[i].Val() {
			case "hash":
				values[i] = p.HGetAll(ctx, key)
			case "zset":
				values[i] = p.Do(ctx, "zrange", key, 0, -1, "withscores")
			case "stream":
				values[i] = p.Do(ctx, "xrange", key, "-", "+")
			default: // a string, or nothing
				values[i] = p.Do(ctx, "get", key)
			}
		}
		return nil
	})
	if err != nil && err != redis.Nil { // a key that there is not, or that has gone since
		t.Fatal(err)
	}
	found := map[string]any{}
	for i, key := range keys {
		switch value := values[i].(type) {
		case *redis.MapStringStringCmd:
			found[key] = value.Val()
		case *redis.Cmd:
			found[key] = value.Val()
		}
	}
	return found
}

// keysKept returns every key that the store has, in order, but for those of the organizations' usage, which is counted a
// while after the operation.
func keysKept(t *testing.T, s *Store) []string {
	t.Helper()
	var mu sync.Mutex
	var keys []string
	onEachPrimary(t, s, func(ctx context.Context, server *redis.Client) error {
		all := server.Scan(ctx, 0, s.config.Prefix+"*", 10_000).Iterator()
		for all.Next(ctx) {
			kind, _, _ := strings.Cut(strings.TrimPrefix(all.Val(), s.config.Prefix), ":")
			if kind == "oq" || kind == "oh" {
				continue
			}
			mu.Lock()
			keys = append(keys, all.Val())
			mu.Unlock()
		}
		return all.Err()
	})
	slices.Sort(keys)
	return slices.Compact(keys)
}

// onEachPrimary does something on each server that has keys of the store, past the store.
func onEachPrimary(t *testing.T, s *Store, do func(ctx context.Context, server *redis.Client) error) {
	t.Helper()
	switch client := peek(t, s).(type) {
	case *redis.ClusterClient:
		mustDo(t, client.ForEachMaster(t.Context(), do))
	case *redis.Client:
		mustDo(t, do(t.Context(), client))
	}
}

// wantUnchanged checks that what is done leaves all that the store keeps as it was.
func wantUnchanged(t *testing.T, s *Store, what string, do func()) {
	t.Helper()
	before := contents(t, s, keysKept(t, s)...)
	do()
	wantSame(t, what, before, contents(t, s, keysKept(t, s)...))
}

// wantSame checks that nothing has changed between two readings of what the store keeps.
func wantSame(t *testing.T, what string, before, after map[string]any) {
	t.Helper()
	for key := range before {
		if !reflect.DeepEqual(after[key], before[key]) {
			t.Errorf("%s: %s was %q, is %q", what, key, before[key], after[key])
		}
		delete(after, key)
	}
	for key := range after {
		t.Errorf("%s: %s is new: %q", what, key, after[key])
	}
}

// indexed returns the ids that an index holds, oldest first.
func indexed(t *testing.T, s *Store, index string) []uuid.UUID {
	t.Helper()
	ids := []uuid.UUID{}
	for _, member := range must(peek(t, s).ZRange(t.Context(), index, 0, -1).Result())(t) {
		ids = append(ids, must(membersIn(s, index).ID(member))(t))
	}
	return ids
}

// membersIn returns how the index with this key writes ids.
func membersIn(s *Store, index string) kernel.Members {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(index, s.config.Prefix), ":")
	if !slices.Contains([]string{"as", "at", "stx"}, kind) {
		return kernel.Members{}
	}
	cell, _ := hex.DecodeString(rest[1:5])
	return kernel.Members{Cell: string(cell)}
}

// must is for calls that the test takes for granted: must(f())(t).
func must[T any](value T, err error) func(*testing.T) T { return redistest.Must(value, err) }

// mustDo is must for calls that return nothing but an error.
func mustDo(t *testing.T, err error) {
	t.Helper()
	must(0, err)(t)
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	redistest.WantError(t, what, err, want)
}

var eventually = suite.Eventually

func TestOpenFillsInTheDefaultsOfItsConfig(t *testing.T) {
	t.Parallel()
	s := must(Open(Config{URL: "redis://localhost"}))(t)
	defer s.Close()
	week := 7 * 24 * time.Hour
	want := Config{URL: "redis://localhost", Prefix: "remit:", Retention: week, RefreshLifetime: week, AccessLifetime: time.Hour,
		FamilyLifetime: 90 * 24 * time.Hour, Durability: Local, EventsKept: 1000, UsageKept: 400 * 24 * time.Hour, UsageEvery: 500 * time.Millisecond}
	wantEqual(t, "the config", s.config, want)
}
