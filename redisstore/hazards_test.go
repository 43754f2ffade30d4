package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisproc"
)

// What go-redis does unasked, on both kinds of real Redis, with commands by themselves and in shared pipelines. More is
// where it belongs: lost replies and forgotten scripts in script_test.go, connections to replicas in connections_test.go.
// docs/reliability.md has the table.

// onEachOwn runs the test on both kinds of real Redis, each the test's own, with calls alone and shared.
func onEachOwn(t *testing.T, test func(t *testing.T, s *Store, node *redis.Client, crowd func(*testing.T, *Store))) {
	t.Helper()
	skipIfShort(t)
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		for name, open := range map[string]func(t *testing.T) (url string, node string){
			"redis": func(t *testing.T) (string, string) {
				url := startRedis(t, redisproc.Config{}).URL()
				return url, url
			},
			"cluster": func(t *testing.T) (string, string) {
				node := startCluster(t, 1)[0]
				return "redis+cluster://" + node, "redis://" + node
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url, node := open(t)
				test(t, openStore(t, Config{}, url, nil), plainClient(t, node), crowd)
			})
		}
	})
}

// serverOfTests returns the only server of a store.
func serverOfTests(t *testing.T, s *Store) *redis.Client {
	t.Helper()
	return must(s.serverOf(t.Context(), s.keys.issuer()))(t)
}

// A script's error may look like one of those that go-redis takes for a reason to run it again: as the answer to a command
// by itself, and as the first of a pipeline. TRYAGAIN, MOVED, ASK and NOSCRIPT are not here: those the store believes
// itself, for they are Redis's own, and no script of ours answers any error (package lua holds them to it).
func TestAScriptThatAnswersAnErrorRunsOnce(t *testing.T) {
	t.Parallel()
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
			crowd(t, s)
			for _, text := range []string{
				"READONLY You can't write against a read only replica.", "LOADING Redis is loading the dataset in memory",
				"CLUSTERDOWN The cluster is down", "MASTERDOWN Link with MASTER is down", "NOREPLICAS Not enough good replicas to write.",
				"ERR max number of clients reached", "OOM command not allowed", "BUSY Redis is busy", "ERR anything else",
			} {
				key := s.keys.ready(uint16(len(text))) // one that Redis lets the store write
				must(peek(t, s).Del(t.Context(), key).Result())(t)
				sc := asScript("hazard", fmt.Sprintf("redis.call('ZADD', KEYS[1], redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[1])) return redis.error_reply(%q)", text), writes)
				if _, err := s.client.Run(t.Context(), flow{}, sc, []string{key}); !strings.Contains(fmt.Sprint(err), text) {
					t.Errorf("%s: %v", text, err)
				}
				if runs := must(peek(t, s).ZCard(t.Context(), key).Result())(t); runs != 1 {
					t.Errorf("%s: it ran %d times", text, runs)
				}
			}
		})
	})
}

func TestACallEndsWithItsCallersTimeOnEachRedis(t *testing.T) {
	t.Parallel()
	onEachOwn(t, func(t *testing.T, s *Store, node *redis.Client, crowd func(*testing.T, *Store)) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		crowd(t, s)
		wantError(t, "before", s.CheckToken(t.Context(), grant.AccessToken), nil)
		must(node.Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL").Result())(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*laneTime)
		defer cancel()
		began := time.Now()
		wantError(t, "a read", s.CheckToken(ctx, grant.AccessToken), ErrUnavailable)
		if time.Since(began) >= ioTimeout {
			t.Error("it waited for the time that is meant for all calls")
		}
	})
}

// When all connections are taken, a call waits for one once, and was certainly not sent.
func TestACallWaitsOnceForAConnection(t *testing.T) {
	t.Parallel()
	onEachOwn(t, func(t *testing.T, s *Store, node *redis.Client, crowd func(*testing.T, *Store)) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		token := byToken(w.exchange(t, s))
		stopSyncing(t, s) // which would wait for a connection too
		server := serverOfTests(t, s)
		s.role.stop() // its command would count among those that wait
		release := takeAllConnections(t, server, node)
		crowd(t, s)
		before := server.PoolStats().Timeouts
		_, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})
		wantError(t, "Charge", err, ErrUnavailable)
		wantError(t, "its cause", err, redis.ErrPoolTimeout)
		if waits := server.PoolStats().Timeouts - before; waits != 1 {
			t.Errorf("it waited %d times", waits)
		}
		release()
		if usage := must(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1}))(t); usage.ActionCount != 1 {
			t.Errorf("%d actions, want 1", usage.ActionCount)
		}
	})
}

// takeAllConnections takes all connections of a client's two pools, until release: those for commands, and those for
// pipelines, which wait for an element of a list.
func takeAllConnections(t *testing.T, client, node *redis.Client) (release func()) {
	t.Helper()
	var waiting atomic.Int32
	for range redis.DefaultPipelinePoolSize {
		waiting.Add(1)
		go func() {
			defer waiting.Add(-1)
			_, _ = client.Pipelined(context.Background(), func(p redis.Pipeliner) error { // until it is cut off
				p.BLPop(context.Background(), 0, "remit:nothing")
				return nil
			})
		}()
	}
	eventually(t, "all pipelines wait", func() bool {
		return strings.Contains(must(node.Info(t.Context(), "clients").Result())(t), fmt.Sprintf("blocked_clients:%d", redis.DefaultPipelinePoolSize))
	})
	held := make([]*redis.Conn, poolSize)
	for i := range held {
		held[i] = client.Conn()
		must(held[i].Ping(t.Context()).Result())(t)
	}
	return func() {
		for _, conn := range held {
			_ = conn.Close()
		}
		eventually(t, "all pipelines have ended", func() bool { return waiting.Load() == 0 })
	}
}

// refusingDials refuses some dials.
type refusingDials struct{ left atomic.Int32 }

func (r *refusingDials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if r.left.Add(-1) >= 0 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return next(ctx, network, address)
	}
}
func (r *refusingDials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (r *refusingDials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A command that must not be sent twice is, to go-redis, also one whose dial must not be tried twice: that is the store's.
func TestADialThatIsRefusedIsTriedAgain(t *testing.T) {
	t.Parallel()
	onEachOwn(t, func(t *testing.T, s *Store, node *redis.Client, crowd func(*testing.T, *Store)) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		token := byToken(w.exchange(t, s))
		hook := &refusingDials{}
		store := watched(t, s, func(string) redis.Hook { return hook })
		crowd(t, store) // which also learns of the cluster
		hook.left.Store(2)
		usage, err := store.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})
		if err != nil || usage.ActionCount != 1 || hook.left.Load() > 0 {
			t.Errorf("%v, %d actions, %d dials left to refuse", err, usage.ActionCount, hook.left.Load())
		}
	})
}

// A new connection that does not come about has sent nothing, whatever its error looks like.
func TestAConnectionThatCannotBeSetUpLeavesNothingInDoubt(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	for _, test := range []struct {
		name    string
		user    []any    // rules before
		after   []any    // rules after
		pause   bool     // Redis answers nothing, and so no greeting
		db      string   // of the URL
		kinds   []string // of Redis that have it
		answers string   // what Redis says
	}{
		{"a wrong password", []any{"+@all"}, []any{"resetpass", ">other"}, false, "", []string{"redis", "cluster"}, "WRONGPASS"},
		{"a user that is off", []any{"+@all"}, []any{"off"}, false, "", []string{"redis", "cluster"}, "WRONGPASS"},
		{"a database that may not be selected", []any{"+@all"}, []any{"-select"}, false, "/1", []string{"redis"}, "NOPERM"},
		{"no answer to the greeting", []any{"+@all"}, nil, true, "", []string{"redis", "cluster"}, "timeout"},
	} {
		for _, kind := range test.kinds {
			t.Run(test.name+", "+kind, func(t *testing.T) {
				t.Parallel()
				aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
					address, scheme := "", "redis+cluster://"
					if kind == "cluster" {
						address = startCluster(t, 1)[0]
					} else {
						port := must(redisproc.FreePort())(t)
						startRedis(t, redisproc.Config{Port: port})
						address, scheme = fmt.Sprintf("127.0.0.1:%d", port), "redis://"
					}
					admin := plainClient(t, "redis://"+address)
					user := append([]any{"ACL", "SETUSER", "remit", "on", ">password", "~*"}, test.user...)
					must(admin.Do(t.Context(), user...).Result())(t)
					s := openStore(t, Config{}, scheme+"remit:password@"+address+test.db, nil)
					w := newTenant(t, s, NewSession{MaxActions: 10})
					token := byToken(w.exchange(t, s))
					must(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1}))(t)
					crowd(t, s)

					if test.after != nil {
						must(admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "remit"}, test.after...)...).Result())(t)
					}
					must(admin.Do(t.Context(), "CLIENT", "KILL", "USER", "remit").Result())(t)
					if test.pause {
						must(admin.Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL").Result())(t)
					}
					_, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})
					if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), test.answers) {
						t.Errorf("%v, want %v by %s", err, ErrUnavailable, test.answers)
					}
					outcomes, err := s.ChargeBatch(t.Context(), token, []BatchCharge{{w.session.ID, Charge{Count: 1}}}, nil)
					if err == nil {
						err = outcomes[0].Err
					}
					wantError(t, "a batch", err, ErrUnavailable)
				})
			})
		}
	}
}

// On a cluster go-redis sends a plain command again whose reply was lost, so each must come to the same when it happens
// twice. A new one is put here by whoever knows that it does.
func TestCommandsBesideScriptsMayHappenTwice(t *testing.T) {
	t.Parallel()
	safe := []string{
		"Get", "HGet", "HGetAll", "HMGet", "Info", "Ping", "Time", "Scan", "XRevRangeN", "ZCard", "ZRandMember", "ZRange", "ZRangeArgsWithScores", // read
		"Set",           // of what does not depend on what was there
		"SetNX",         // of an issuer, which is read after it
		"ZAdd",          // of a member that is new, with score 0; of what an organization holds, whatever was there
		"ZRem",          // of a member that is gone for good
		"Unlink",        // of what is gone for good
		"PExpire", "Do", // of a mark that means nothing; ASKING, and reads
		"Close", "Pipelined", "Process", "Pipeline", "Exec", "Options", "Len", "PoolStats", // no commands; what is processed is run once
	}
	direct := regexp.MustCompile(`\b(?:s\.client|p|pipeline|primary|server)\.([A-Z]\w*)\(`)
	found := 0
	for _, file := range must(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, call := range direct.FindAllStringSubmatch(string(must(os.ReadFile(file))(t)), -1) {
			if found++; !slices.Contains(safe, call[1]) {
				t.Errorf("%s: %s may happen twice on a cluster", file, call[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d commands are found: the test sees them no more", found)
	}
}

// When a node is gone, those that are left refuse all commands, until a replica has taken its place or it is back.
func TestAClusterThatIsDownLeavesNothingInDoubt(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		cluster := must(redisproc.StartCluster(t.Context(), 3))(t)
		t.Cleanup(func() { _ = cluster.Stop() })
		s := openStore(t, Config{}, cluster.URL(), nil)
		admin := plainClient(t, "redis://"+cluster.Addrs()[0])
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
		for slotsOf(t, admin, []string{s.keys.agent(w.agent.ID)})[0] >= 16384/3 { // until it is of the first node
			w = newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
		}
		token := byToken(w.exchange(t, s))
		must(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1}))(t)
		crowd(t, s)
		suspendProcess(t, cluster.PID(2))
		eventually(t, "the cluster is down", func() bool {
			return redis.HasErrorPrefix(admin.Get(t.Context(), s.keys.agent(w.agent.ID)).Err(), "CLUSTERDOWN")
		})
		for range 5 {
			_, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "CLUSTERDOWN") {
				t.Errorf("%v, want %v by CLUSTERDOWN", err, ErrUnavailable)
			}
		}
		_ = syscall.Kill(cluster.PID(2), syscall.SIGCONT)
		acknowledged := int64(1)
		eventually(t, "it works again", func() bool {
			_, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})
			if err == nil {
				acknowledged++
			}
			return err == nil
		})
		if n := must(s.Session(t.Context(), token, w.session.ID))(t).ActionCount; n != acknowledged {
			t.Errorf("%d actions, %d were acknowledged", n, acknowledged)
		}
	})
}

func suspendProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
}
