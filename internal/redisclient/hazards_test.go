package redisclient

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

// What go-redis does unasked, on both kinds of real Redis, with commands by themselves and in shared pipelines. More is in
// run_test.go (lost replies, forgotten scripts) and connections_test.go (connections to replicas).
// docs/reliability.md sums them up.

// A script's error may look like one of those that go-redis takes for a reason to run it again: as the answer to a command
// by itself, and as the first of a pipeline. TRYAGAIN, MOVED, ASK and NOSCRIPT are not here: the client believes those
// itself, because they are Redis's own, and no script of package lua answers any error.
func TestAScriptThatAnswersAnErrorRunsOnce(t *testing.T) {
	t.Parallel()
	onEachOwn(t, func(t *testing.T, c *Client, node *redis.Client, crowd func(*testing.T, *Client)) {
		crowd(t, c)
		for _, text := range []string{
			"READONLY You can't write against a read only replica.", "LOADING Redis is loading the dataset in memory",
			"CLUSTERDOWN The cluster is down", "MASTERDOWN Link with MASTER is down", "NOREPLICAS Not enough good replicas to write.",
			"ERR max number of clients reached", "OOM command not allowed", "BUSY Redis is busy", "ERR anything else",
		} {
			key := newCounter(c).key
			source := fmt.Sprintf("redis.call('INCR', KEYS[1]) return redis.error_reply(%q)", text)
			if _, err := c.Run(t.Context(), Flow{}, unregistered(source), []string{key}); !strings.Contains(fmt.Sprint(err), text) {
				t.Errorf("%s: %v", text, err)
			}
			wantEqual(t, text+": runs", must(node.Get(t.Context(), key).Int())(t), 1)
		}
	})
}

// unregistered returns a script that is counted as "other": names are registered only while the process starts.
func unregistered(source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{name: "hazard", source: []byte(source), sha: []byte(hex.EncodeToString(sum[:])), access: Writes}
}

func TestACallEndsWithItsCallersTimeOnEachRedis(t *testing.T) {
	t.Parallel()
	onEachOwn(t, func(t *testing.T, c *Client, node *redis.Client, crowd func(*testing.T, *Client)) {
		n := newCounter(c)
		crowd(t, c)
		wantError(t, "before", second(n.read(t.Context())), nil)
		must(node.Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL").Result())(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*minTimeLeft)
		defer cancel()
		began := time.Now()
		wantError(t, "a read", second(n.read(ctx)), ErrUnavailable)
		if time.Since(began) >= ioTimeout {
			t.Error("it waited for the time that is meant for all calls")
		}
	})
}

// The service bounds what follows a response by less than a call may take.
func TestACallersTimeEndsNoOtherCallOfItsPipeline(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, c *Client, node *redis.Client) {
		counters := countersTogether(c, 2)
		addAll(t, counters)
		must(node.Do(t.Context(), "CLIENT", "PAUSE", (ioTimeout - minTimeLeft).Milliseconds(), "ALL").Result())(t)
		atOnce(t, c, counters[0].key, func(ctx context.Context) {
			hurried, cancel := context.WithTimeout(ctx, ioTimeout/2)
			defer cancel()
			wantError(t, "the hurried one", second(counters[0].add(hurried, Flow{})), ErrOutcomeUnknown)
		}, func(ctx context.Context) {
			wantError(t, "another", second(counters[1].add(ctx, Flow{})), nil)
		})
		wantSums(t, counters, 2)
	})
}

// When all connections are taken, a call waits for one once, and was certainly not sent.
func TestACallWaitsOnceForAConnection(t *testing.T) {
	t.Parallel()
	onEachOwn(t, func(t *testing.T, c *Client, node *redis.Client, crowd func(*testing.T, *Client)) {
		n := newCounter(c)
		must(n.read(t.Context()))(t)
		server := must(c.serverOf(t.Context(), n.key))(t)
		c.role.stop() // its command would count among those that wait
		release := takeAllConnections(t, server, node)
		crowd(t, c)
		before := server.PoolStats().Timeouts
		_, err := n.add(t.Context(), Flow{})
		wantError(t, "a write", err, ErrUnavailable)
		wantError(t, "its cause", err, redis.ErrPoolTimeout)
		wantEqual(t, "times it waited", server.PoolStats().Timeouts-before, 1)
		release()
		must(n.add(t.Context(), Flow{}))(t)
		wantSums(t, []counter{n}, 1)
	})
}

// takeAllConnections takes all connections of a client's two pools, until release: those for commands, and those for
// pipelines, which wait for an element of a list.
func takeAllConnections(t *testing.T, client, node *redis.Client) (release func()) {
	t.Helper()
	releaseOthers := holdConnections(t, client, poolSize) // first, because the pipelines are cut off after ioTimeout
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
	return func() {
		releaseOthers()
		eventually(t, "all pipelines have ended", func() bool { return waiting.Load() == 0 })
	}
}

type refusingDials struct{ left atomic.Int32 }

func (r *refusingDials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (r *refusingDials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *refusingDials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if r.left.Add(-1) >= 0 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return next(ctx, network, address)
	}
}

// A command that must not be sent twice is, to go-redis, also one whose dial must not be tried twice: that is the client's.
func TestADialThatIsRefusedIsTriedAgain(t *testing.T) {
	t.Parallel()
	onEachOwn(t, func(t *testing.T, c *Client, node *redis.Client, crowd func(*testing.T, *Client)) {
		loadScripts(t, c)
		hook := &refusingDials{}
		n := newCounter(openAgain(t, c))
		watched(n.c, func(string) redis.Hook { return hook })
		crowd(t, n.c)
		idle := must(n.c.serverOf(t.Context(), n.key))(t).Conn() // the connection by which it may have learnt of the cluster
		defer idle.Close()
		must(idle.Ping(t.Context()).Result())(t)
		hook.left.Store(2)
		sum, err := n.add(t.Context(), Flow{})
		if err != nil || sum != 1 || hook.left.Load() > 0 {
			t.Errorf("%v, the sum is %d, %d dials left to refuse", err, sum, hook.left.Load())
		}
	})
}

// A connection that could not be opened has sent nothing, whatever its error looks like.
func TestAConnectionThatCannotBeSetUpLeavesNothingInDoubt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after    []any  // rules of the user, nil if Redis answers nothing, and so no greeting
		database string // of the URL; a cluster has one only
		answers  string // what Redis says
	}{
		"a wrong password":                    {[]any{"resetpass", ">other"}, "", "WRONGPASS"},
		"a user that is off":                  {[]any{"off"}, "", "WRONGPASS"},
		"a database that may not be selected": {[]any{"-select"}, "?db=1", "NOPERM"},
		"no answer to the greeting":           {nil, "", "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachOwn(t, func(t *testing.T, own *Client, admin *redis.Client, crowd func(*testing.T, *Client)) {
				if _, isCluster := own.redis.(*redis.ClusterClient); isCluster && test.database != "" {
					return
				}
				must(admin.Do(t.Context(), "ACL", "SETUSER", "remit", "on", ">password", "~*", "+@all").Result())(t)
				c := openClient(t, Config{}, strings.Replace(own.config.URL, "://", "://remit:password@", 1)+test.database)
				n := newCounter(c)
				must(n.add(t.Context(), Flow{}))(t)
				crowd(t, c)
				together := countersTogether(openAgain(t, c), maxMerged)
				wantSums(t, together, 0)

				if test.after != nil {
					must(admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "remit"}, test.after...)...).Result())(t)
				}
				must(admin.TxPipelined(t.Context(), func(p redis.Pipeliner) error { // no connection is made in between
					p.Do(t.Context(), "CLIENT", "KILL", "USER", "remit")
					if test.after == nil {
						p.Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL")
					}
					return nil
				}))(t)
				_, err := n.add(t.Context(), Flow{})
				if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), test.answers) {
					t.Errorf("%v, want %v by %s", err, ErrUnavailable, test.answers)
				}
				wantError(t, "a batch", second(n.addInBatch(t.Context())), ErrUnavailable)
				for _, err := range addsAtOnce(t, together) {
					wantError(t, "a merged command", err, ErrUnavailable)
				}
			})
		})
	}
}

// When a node is gone, those that are left refuse all commands, until a replica has taken its place or it is back.
func TestAClusterThatIsDownLeavesNothingInDoubt(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Client)) {
		cluster := must(redisproc.StartCluster(t.Context(), 3))(t)
		t.Cleanup(func() { _ = cluster.Stop() })
		c := openClient(t, Config{}, cluster.URL())
		admin := redistest.PlainClient(t, "redis://"+cluster.Addrs()[0])
		n := newCounter(c)
		for redistest.SlotsOf(t, admin, []string{n.key})[0] >= 16384/3 { // until it is of the first node
			n = newCounter(c)
		}
		must(n.add(t.Context(), Flow{}))(t)
		crowd(t, c)
		redistest.SuspendProcess(t, cluster.PID(2))
		eventually(t, "the cluster is down", func() bool {
			return redis.HasErrorPrefix(admin.Get(t.Context(), n.key).Err(), "CLUSTERDOWN")
		})
		for range 5 {
			_, err := n.add(t.Context(), Flow{})
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "CLUSTERDOWN") {
				t.Errorf("%v, want %v by CLUSTERDOWN", err, ErrUnavailable)
			}
		}
		_ = syscall.Kill(cluster.PID(2), syscall.SIGCONT)
		acknowledged := int64(1)
		eventually(t, "it works again", func() bool {
			_, err := n.add(t.Context(), Flow{})
			if err == nil {
				acknowledged++
			}
			return err == nil
		})
		wantSums(t, []counter{n}, acknowledged)
	})
}

func second[T any](_ T, err error) error { return err }
