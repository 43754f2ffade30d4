package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/money"
	"remit/test/redistest"
)

// actionsAt returns how many actions of the session the server counts.
func actionsAt(t *testing.T, s *Store, address string, w tenant) int64 {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, MaxRetries: -1})
	defer client.Close()
	var count *redis.StringCmd
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Do(t.Context(), "READONLY") // which lets a cluster's replica answer, and which others do not know
		count = p.HGet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "n")
		return nil
	})
	if _, parsed := strconv.Atoi(count.Val()); parsed != nil {
		t.Fatalf("actions at %s: %v, %v", address, err, count)
	}
	return must(count.Int64())(t)
}

func TestWhatIsAcknowledgedIsOnTheReplica(t *testing.T) {
	onEachPair(t, func(t *testing.T, p *redistest.Pair, crowd func(*testing.T, *Store)) {
		s := pairStore(t, p, Replicated)
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		crowd(t, s)
		for range 50 {
			usage := must(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1}))(t)
			if there := actionsAt(t, s, p.Replica, w); there < usage.ActionCount {
				t.Fatalf("%d actions are acknowledged, the replica has %d", usage.ActionCount, there)
			}
		}
		outcomes := must(s.ChargeBatch(t.Context(), token, []BatchCharge{{w.session.ID, Charge{Count: 1}}}, nil))(t)
		if there := actionsAt(t, s, p.Replica, w); outcomes[0].Err != nil || there != 51 {
			t.Errorf("after a batch the replica has %d, want 51: %v", there, outcomes[0].Err)
		}
	})
}

func TestEveryWriteThatNoReplicaConfirmsIsInDoubtAndReadsGoOn(t *testing.T) {
	onEachPair(t, func(t *testing.T, p *redistest.Pair, crowd func(*testing.T, *Store)) {
		s := pairStore(t, p, Replicated)
		operations, tenants := newOperations(t, anotherInstance(t, s, Local)) // a busy machine may confirm late
		for _, w := range tenants {
			must(s.Organization(t.Context(), w.key))(t) // so that its key is proven
		}
		loadScripts(t, s) // or each would wait twice
		crowd(t, s)
		resume := p.SuspendReplica(t)
		defer resume()
		var group sync.WaitGroup
		for _, operation := range operations {
			group.Go(func() {
				began := time.Now()
				err := operation.do(t.Context(), s)
				took := time.Since(began)
				switch {
				case operation.script.Access() != writes:
					if err != nil {
						t.Errorf("%s: %v", operation.name, err)
					}
				case changesFirst(operation) && !operation.usesUpAProof():
					wantError(t, operation.name, err, ErrOutcomeUnknown)
				default: // what comes before the change is in doubt, and stays invisible
					wantError(t, operation.name, err, ErrUnavailable)
				}
				if took > 2*callTimeout {
					t.Errorf("%s took %v", operation.name, took)
				}
			})
		}
		redistest.WaitAtMost(t, 30*time.Second, &group)
		wantEqual(t, "the batches that are counted as unknown", countedBatches(t, s, "unknown"), 1)
		if _, err := s.KeepIssuer(t.Context(), "https://a.example"); !strings.Contains(fmt.Sprint(err), "no replica has confirmed") {
			t.Errorf("KeepIssuer, the first: %v", err)
		}
		wantError(t, "KeepIssuer, the next", errOf(s.KeepIssuer(t.Context(), "https://b.example")), nil)
		wantError(t, "SetIssuer", s.SetIssuer(t.Context(), "https://c.example"), ErrUnavailable)
	})
}

// changesFirst says whether an operation's first write is its change: others note in an index what they are about to
// create or delete, or claim a key.
func changesFirst(o operation) bool {
	for _, prepared := range []string{"CreateAgent", "DeleteAgent", "CreateSession", "Begin", "Charge with an idempotency key, its claim", "ChargeBatch with an idempotency key"} {
		if strings.HasPrefix(o.name, prepared) && o.name != "CreateSessionKey" {
			return false
		}
	}
	return true
}

func TestAnUnconfirmedWriteIsThereAndItsRepetitionIsConfirmedLater(t *testing.T) {
	onEachPair(t, func(t *testing.T, p *redistest.Pair, crowd func(*testing.T, *Store)) {
		s := pairStore(t, p, Replicated)
		w := newTenant(t, s, NewSession{MaxActions: 2, MaxValue: money.USD})
		grant := w.exchange(t, s)
		crowd(t, s)
		resume := p.SuspendReplica(t)
		charge := func(idem *Idempotency) error {
			return errOf(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Idempotency: idem}))
		}
		idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		wantError(t, "the first time", charge(idem), ErrOutcomeUnknown)
		wantError(t, "again", charge(repeatOf(idem)), ErrOutcomeUnknown)
		wantError(t, "without a key", charge(nil), ErrOutcomeUnknown)
		wantEqual(t, "the actions that the primary counts", actionsAt(t, s, p.Primary, w), 2)
		var limit *LimitError
		if err := charge(nil); !errors.As(err, &limit) {
			t.Errorf("beyond the limit: %v: a refusal acknowledges nothing", err)
		}
		wantError(t, "revoking", errOf(s.RevokeAgent(t.Context(), w.key, w.agent.ID)), ErrOutcomeUnknown)
		wantError(t, "revoking again, which writes nothing", errOf(s.RevokeAgent(t.Context(), w.key, w.agent.ID)), ErrOutcomeUnknown)
		resume()
		eventually(t, "it is confirmed", func() bool { return errOf(s.RevokeAgent(t.Context(), w.key, w.agent.ID)) == nil })
		wantEqual(t, "the actions that the replica counts", actionsAt(t, s, p.Replica, w), 2)
	})
}

// The reason for it all: the replica was cut off, and is made the primary.
func TestOnlyWhatAReplicaHasConfirmedOutlivesThePrimary(t *testing.T) {
	t.Parallel()
	for durability, loses := range map[Durability]bool{Local: true, Replicated: false} {
		t.Run(string(durability), func(t *testing.T) {
			t.Parallel()
			p := redistest.StartPair(t, false)
			s := pairStore(t, p, durability)
			w := newTenant(t, s, NewSession{MaxActions: 1_000_000})
			token := byToken(w.exchange(t, s))
			eventually(t, "the replica has the session", func() bool {
				return redistest.PlainClient(t, "redis://"+p.Replica).Exists(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Val() == 1
			})
			var acknowledged, doubt atomic.Int64
			var group sync.WaitGroup
			running, stop := context.WithCancel(t.Context())
			for range 20 {
				group.Go(func() {
					for running.Err() == nil {
						if _, err := s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1}); err == nil {
							acknowledged.Add(1)
						} else {
							doubt.Add(1)
						}
					}
				})
			}
			eventually(t, "charges are acknowledged", func() bool { return acknowledged.Load() > 200 })
			p.Link.GoDown()
			before := acknowledged.Load()
			eventually(t, "charges came after", func() bool { return acknowledged.Load() > before+200 || doubt.Load() > 20 })
			stop()
			redistest.WaitAtMost(t, 30*time.Second, &group)
			promoted := redistest.PlainClient(t, "redis://"+p.Replica)
			must(promoted.Do(t.Context(), "REPLICAOF", "NO", "ONE").Result())(t)
			there := actionsAt(t, s, p.Replica, w)
			t.Logf("acknowledged %d, in doubt %d, on the new primary %d", acknowledged.Load(), doubt.Load(), there)
			if lost := acknowledged.Load() > there; lost != loses {
				t.Errorf("%d were acknowledged and %d are there; lost: %v, want %v", acknowledged.Load(), there, lost, loses)
			}
		})
	}
}

func TestConfirmedChargesFollowASlotThatMoves(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		redistest.SkipIfShort(t)
		c := must(redisproc.StartClusterWithReplicas(t.Context(), 2, t.TempDir()))(t)
		t.Cleanup(func() { _ = c.Stop() })
		s := openStore(t, Config{Durability: Replicated}, c.URL(), nil)
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		unaware := must(Open(s.config))(t)
		defer unaware.Close()
		move := redistest.NewMove(t, s.keys.Agent(w.agent.ID), c.Addrs()[:2])
		var charged int64
		wantCharged := charging(t, move, token, w.session.ID, &charged)
		wantCharged("before", s, "")
		wantCharged("before, by the unaware", unaware, "")
		crowd(t, s)
		crowd(t, unaware)

		move.Begin(t)
		wantCharged("with no key moved", s, "")
		move.Rest(t)
		wantCharged("with all keys moved", s, "ASK")
		move.End(t)
		wantCharged("after", s, "")
		wantCharged("after, by the unaware", unaware, "MOVED")
	})
}

func TestReadyWarnsWhenNoReplicaCanConfirm(t *testing.T) {
	t.Parallel()
	for name, cluster := range map[string]bool{"redis": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := redistest.StartPair(t, cluster)
			warned := func(d Durability) bool {
				warnings := must(pairStore(t, p, d).Ready(t.Context()))(t)
				return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "no replica") })
			}
			eventually(t, "no warning while a replica follows", func() bool { return !warned(Replicated) })
			_ = syscall.Kill(p.ReplicaPID, syscall.SIGKILL)
			eventually(t, "it warns", func() bool { return warned(Replicated) })
			if warned(Local) {
				t.Error("it warns though no replica is asked")
			}
		})
	}
}

// From Redis 7.2 on a WAIT waits for nothing if its connection has written nothing.
func TestBeforeEveryWaitTheConnectionWritesThoughMemoryIsFull(t *testing.T) {
	t.Parallel()
	p := redistest.StartPair(t, false)
	s := pairStore(t, p, Replicated)
	w := newTenant(t, s, NewSession{MaxActions: 1})
	stopSyncing(t, s)
	must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
	primary := redistest.PlainClient(t, p.URL)
	before := redistest.CommandCounts(t, primary)
	must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
	run := redistest.CommandsRun(t, primary, before)
	if run["eval"] != 1 || run["wait"] != 1 || run["hset"] != 1 {
		t.Errorf("revoking again ran %v, want a mark's hset and a wait", run)
	}

	mustDo(t, primary.ConfigSet(t.Context(), "maxmemory", "1").Err())
	wantError(t, "revoking again, which writes nothing", errOf(s.RevokeAgent(t.Context(), w.key, w.agent.ID)), nil)
	marks := must(primary.Keys(t.Context(), s.keys.Prefix+"w:*").Result())(t)
	if len(marks) == 0 {
		t.Fatal("no write was marked")
	}
	must(primary.Del(t.Context(), marks...).Result())(t) // as for an instance that has none yet
	wantError(t, "revoking without a mark", errOf(s.RevokeAgent(t.Context(), w.key, w.agent.ID)), nil)
}
