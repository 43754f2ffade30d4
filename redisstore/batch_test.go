package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/money"
	"remit/test/redistest"
)

func TestABatchThatIsRefusedAsAWholeChangesNothing(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		live, dead := w.exchange(t, s), w.exchange(t, s)
		must(0, s.RevokeFamily(t.Context(), live.AccessToken, dead.Family))(t)
		charge := BatchCharge{w.session.ID, Charge{Count: 1}}
		used := Idempotency{Key: "used", Fingerprint: [32]byte{1}}
		must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{charge}, &used))(t)
		must(s.ChargeBatch(t.Context(), byToken(live), []BatchCharge{charge}, repeatOf(&used)))(t)
		batch := []BatchCharge{charge, {NewID(w.agent.ID), Charge{Count: 1}}, charge}
		for name, test := range map[string]struct {
			caller Caller
			batch  []BatchCharge
			idem   *Idempotency
			want   error
		}{
			"a wrong key, of nothing":   {Caller{Key: &APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}}, nil, nil, ErrInvalidAPIKey},
			"a revoked family, nothing": {byToken(dead), nil, nil, ErrInvalidToken},
			"another batch, by key":     {w.byKey(), batch, &Idempotency{Key: "used", Fingerprint: [32]byte{2}}, ErrIdempotencyKeyReused},
			"another batch, by token":   {byToken(live), batch, &Idempotency{Key: "used", Fingerprint: [32]byte{2}}, ErrIdempotencyKeyReused},
			"nothing, by key":           {w.byKey(), nil, nil, nil},
			"nothing, by token":         {byToken(live), nil, nil, nil},
		} {
			wantUnchanged(t, s, name, func() {
				outcomes, err := s.ChargeBatch(t.Context(), test.caller, test.batch, test.idem)
				wantError(t, name, err, test.want)
				wantEqual(t, name+": how many outcomes there are", len(outcomes), 0)
			})
		}
	})
}

// newSpread returns a tenant with sessions of several agents, which a cluster has on several
// servers, and a batch that charges each once.
func newSpread(t *testing.T, s *Store, agents, perAgent int) (tenant, []BatchCharge) {
	t.Helper()
	w := newTenant(t, s, NewSession{MaxActions: 1000})
	var batch []BatchCharge
	for _, agent := range newAgents(t, s, w.key, agents) {
		for range perAgent {
			session := must(s.CreateSession(t.Context(), w.key,
				NewSession{Agent: agent.ID, MaxActions: 1000, MaxValue: money.USD, Lifetime: time.Hour}))(t)
			batch = append(batch, BatchCharge{session.ID, Charge{Count: 1, Value: 1}})
		}
	}
	return w, batch
}

// watched returns a store on the same Redis, with the hook on each server's client.
func watched(t *testing.T, s *Store, hook func(address string) redis.Hook) *Store {
	t.Helper()
	other := must(Open(s.config))(t)
	t.Cleanup(func() { _ = other.Close() })
	switch client := other.client.Redis().(type) {
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) { node.AddHook(hook(node.Options().Addr)) })
	case *redis.Client:
		client.AddHook(hook(client.Options().Addr))
	}
	return other
}

// batchHook meets each pipeline of a batch's scripts, and each that is sent by itself.
type batchHook struct {
	pipeline func(send func() error, scripts []redis.Cmder) error
	single   func()
}

func (h batchHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h batchHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if h.single != nil && isBatch(command) {
			h.single()
		}
		return next(ctx, command)
	}
}

func (h batchHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if !isBatch(commands[0]) {
			return next(ctx, commands)
		}
		return h.pipeline(func() error { return next(ctx, commands) }, commands)
	}
}

func isBatch(command redis.Cmder) bool {
	word, named := command.Args()[min(1, len(command.Args())-1)].(fmt.Stringer)
	return named && (word.String() == chargeBatch.SHA() || word.String() == chargeBatch.Keyed.SHA())
}

func TestABatchIsOnePipelineForEachServer(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, sessions := newSpread(t, s, 20, 5)
		batch := slices.Repeat(sessions, 5)
		loadOnEach(t, s)
		var mu sync.Mutex
		pipelines, scripts := map[string]int{}, 0
		var singles atomic.Int64
		store := watched(t, s, func(address string) redis.Hook {
			return batchHook{
				func(send func() error, commands []redis.Cmder) error {
					mu.Lock()
					defer mu.Unlock()
					pipelines[address]++
					scripts += len(commands)
					return send()
				},
				func() { singles.Add(1) },
			}
		})
		servers := map[string]int{}
		for _, charge := range sessions {
			server := serverOf(t, store, s.keys.Session(charge.Session, charge.Session))
			servers[server.Options().Addr] = 1
		}
		outcomes := must(store.ChargeBatch(t.Context(), w.byKey(), batch, nil))(t)
		for i, outcome := range outcomes {
			if want := int64(i/len(sessions) + 1); outcome.Err != nil || outcome.Usage.ActionCount != want {
				t.Errorf("%d: %+v, want %d actions", i, outcome, want)
			}
		}
		wantEqual(t, "how many scripts are sent", scripts, len(sessions))
		wantEqual(t, "how many are sent by themselves", singles.Load(), 0)
		wantEqual(t, "the pipelines to each server", pipelines, servers)
	})
}

// loadOnEach makes the scripts of a batch known to each server.
func loadOnEach(t *testing.T, s *Store) {
	t.Helper()
	for _, source := range []string{chargeBatch.Source(), chargeBatch.Keyed.Source()} {
		mustDo(t, peek(t, s).ScriptLoad(t.Context(), source).Err())
	}
}

func TestABatchRunsThoughSomeServersForgotItsScript(t *testing.T) {
	t.Parallel()
	addresses := redistest.StartCluster(t, 3)
	s := openStore(t, Config{}, "redis+cluster://"+strings.Join(addresses, ","), nil)
	w, batch := newSpread(t, s, 12, 2)
	loadOnEach(t, s)
	for round := int64(1); round <= 3; round++ {
		must(redistest.PlainClient(t, "redis://"+addresses[round-1]).ScriptFlush(t.Context()).Result())(t)
		wantAllCharged(t, must(s.ChargeBatch(t.Context(), w.byKey(), batch, nil))(t), round)
	}
	onEach := &Idempotency{Key: "key"}
	must(redistest.PlainClient(t, "redis://"+addresses[0]).ScriptFlush(t.Context()).Result())(t)
	wantAllCharged(t, must(s.ChargeBatch(t.Context(), w.byKey(), batch, onEach))(t), 4)
	forgetScripts(t, s)
	again := repeatOf(onEach)
	wantAllCharged(t, must(s.ChargeBatch(t.Context(), w.byKey(), batch, again))(t), 4)
	wantEqual(t, "it is replayed", again.Outcome.Replayed, true)
}

// wantAllCharged checks that each session of a batch has been charged so often.
func wantAllCharged(t *testing.T, outcomes []ChargeOutcome, times int64) {
	t.Helper()
	for i, outcome := range outcomes {
		if outcome.Err != nil || outcome.Usage.ActionCount != times || outcome.Usage.ValueUsed != money.MicroUSD(times) {
			t.Errorf("%d: %+v, %v, want %d", i, outcome.Usage, outcome.Err, times)
		}
	}
}

func TestABatchFollowsASlotThatMoves(t *testing.T) {
	t.Parallel()
	addresses := redistest.StartCluster(t, 2)
	s := openStore(t, Config{}, "redis+cluster://"+strings.Join(addresses, ","), nil)
	w, batch := newSpread(t, s, 6, 2)
	moving := batch[0].Session
	move := redistest.NewMove(t, s.keys.Session(moving, moving), addresses)
	run := func() []ChargeOutcome { return must(s.ChargeBatch(t.Context(), w.byKey(), batch, nil))(t) }

	wantAllCharged(t, run(), 1)
	move.Begin(t)
	wantAllCharged(t, run(), 2)
	redistest.MoveKey(t, move.Source, move.To, s.keys.Session(moving, moving))
	outcomes := run()
	wantError(t, "with one of its keys moved", outcomes[0].Err, ErrUnavailable)
	if errors.Is(outcomes[0].Err, ErrOutcomeUnknown) {
		t.Errorf("%v is in doubt", outcomes[0].Err)
	}
	wantAllCharged(t, outcomes[1:], 3)
	move.Rest(t)
	must(s.Charge(t.Context(), w.byKey(), moving, Charge{Count: 1, Value: 1}))(t) // the one that was missing
	wantAllCharged(t, run(), 4)
	move.End(t)
	wantAllCharged(t, run(), 5)
}

// A failure of one server affects only its sessions' items; repeating the batch with its idempotency key completes it.
func TestTroubleWithOneServerIsThatOfItsSessionsAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		trouble  func(send func() error) error
		want     error
		replayed bool // all of it, the second time
	}{
		{"its reply is lost", func(send func() error) error {
			if err := send(); err != nil {
				return err
			}
			return io.EOF
		}, ErrOutcomeUnknown, true},
		{"it cannot be reached", func(func() error) error {
			return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}, ErrUnavailable, false},
	} {
		for name, keyed := range map[string]bool{"": false, ", with an idempotency key": true} {
			t.Run(test.name+name, func(t *testing.T) {
				t.Parallel()
				onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
					w, batch := newSpread(t, s, 12, 2)
					loadOnEach(t, s)
					addressOf := func(c BatchCharge) string {
						return serverOf(t, s, s.keys.Session(c.Session, c.Session)).Options().Addr
					}
					troubled := addressOf(batch[0])
					var troubles atomic.Int64
					store := watched(t, s, func(address string) redis.Hook {
						return batchHook{pipeline: func(send func() error, commands []redis.Cmder) error {
							if address != troubled || troubles.Add(1) > 1 {
								return send()
							}
							err := test.trouble(send)
							for _, command := range commands {
								command.(interface{ SetVal(any) }).SetVal(nil)
								command.SetErr(err)
							}
							return err
						}}
					})
					var idem *Idempotency
					if keyed {
						idem = &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
					}
					outcomes := must(store.ChargeBatch(WithRequestID(t.Context(), "first"), w.byKey(), batch, idem))(t)
					for i, outcome := range outcomes {
						if addressOf(batch[i]) != troubled {
							wantAllCharged(t, outcomes[i:i+1], 1)
						} else if !errors.Is(outcome.Err, test.want) || outcome.Usage != (Usage{}) {
							t.Errorf("%d: %+v, want %v", i, outcome, test.want)
						}
					}
					wantEqual(t, "how often it was sent", troubles.Load(), 1)
					if !keyed {
						return
					}
					again := repeatOf(idem)
					wantAllCharged(t, must(store.ChargeBatch(t.Context(), w.byKey(), batch, again))(t), 1)
					if again.Outcome.Replayed != test.replayed || test.replayed && again.Outcome.FirstRequest != "first" {
						t.Errorf("%+v, want replayed %t", again, test.replayed)
					}
				})
			})
		}
	}
}

func TestABatchRejectsAReplyThatNoScriptReturns(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]any{
		"no outcomes":            {},
		"outcomes in words":      {"many"},
		"too few":                {[]any{}},
		"an outcome in words":    {[]any{"ok"}},
		"an outcome without all": {[]any{[]any{"ok", "1"}}},
		"an unknown outcome":     {[]any{[]any{"nonsense"}}},
	} {
		outcomes := make([]ChargeOutcome, 1)
		p := batchPart{places: []int{0}, BatchCall: redisclient.BatchCall{Reply: &reply{Values: values}}}
		p.spread(outcomes)
		wantError(t, name, outcomes[0].Err, errReply)
	}
}

// countedBatches returns how many calls of a batch's script ended so, and fails the test if those that came to nothing known
// are not all among the failures.
func countedBatches(t *testing.T, s *Store, outcome string) float64 {
	t.Helper()
	calls := redistest.Gathered(t, s, "remit_redis_call_duration_seconds")["charge_batch "+outcome+" "]
	if failures, one := redistest.Gathered(t, s, "remit_redis_failures_total")[outcome+" "]; one && failures < calls {
		t.Errorf("%v calls ended %s, and %v failures are told", calls, outcome, failures)
	}
	return calls
}

// What befalls the parts of a batch, one by one, is counted as what befalls a call.
func TestABatchIsCountedByTheWorstOfItsParts(t *testing.T) {
	onEachRefusing(t, readableRefusing, func(t *testing.T, s *Store, state refusing, refuse, accept func()) {
		w, batch := newSpread(t, s, 3, 2)
		loadOnEach(t, s)
		fine, refused := countedBatches(t, s, "ok"), countedBatches(t, s, "unavailable")
		wantAllCharged(t, must(s.ChargeBatch(t.Context(), w.byKey(), batch, nil))(t), 1)
		servers := countedBatches(t, s, "ok") - fine
		refuse()
		for _, outcome := range must(s.ChargeBatch(t.Context(), w.byKey(), batch, nil))(t) {
			wantError(t, state.name, outcome.Err, ErrUnavailable)
		}
		accept()
		wantEqual(t, "how many more were counted as well", countedBatches(t, s, "ok")-fine, servers)
		wantEqual(t, "how many more were counted as unavailable", countedBatches(t, s, "unavailable")-refused, servers)
	})
}

func TestABatchThatIsShedIsCounted(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, batch := newSpread(t, s, 1, 1)
		var held atomic.Int64
		release := make(chan struct{})
		store := watched(t, s, func(string) redis.Hook {
			return batchHook{pipeline: func(send func() error, _ []redis.Cmder) error {
				held.Add(1)
				<-release
				return send()
			}}
		})
		var holders sync.WaitGroup
		for range batchesAtOnce {
			holders.Go(func() { _, _ = store.ChargeBatch(context.Background(), w.byKey(), batch, nil) })
		}
		eventually(t, "every place is taken", func() bool { return held.Load() == batchesAtOnce })
		for _, outcome := range must(store.ChargeBatch(t.Context(), w.byKey(), batch, nil))(t) {
			wantError(t, "a charge", outcome.Err, ErrOverloaded)
		}
		wantEqual(t, "how many were counted as shed", countedBatches(t, store, "overloaded"), 1)
		close(release)
		holders.Wait()
	})
}

// batchesAtOnce is how many batches package redisclient sends to one server at once.
const batchesAtOnce = 4

// A pipeline that only hears that the server does not know the script is followed by a call that is counted.
func TestABatchIsCountedOnceAfterNOSCRIPT(t *testing.T) {
	t.Parallel()
	addresses := redistest.StartCluster(t, 1)
	s := openStore(t, Config{}, "redis+cluster://"+addresses[0], nil)
	w, batch := newSpread(t, s, 1, 1)
	forgetScripts(t, s)
	wantAllCharged(t, must(s.ChargeBatch(t.Context(), w.byKey(), batch, nil))(t), 1)
	wantEqual(t, "how many batches one charge is counted as", countedBatches(t, s, "ok"), 1)
}
