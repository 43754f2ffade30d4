package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// gate holds one pipeline until all calls that are to share the next one wait, and notes which scripts Redis is sent.
type gate struct {
	armed   atomic.Bool
	entered chan struct{}
	release chan struct{}
	sent    sync.Map
}

// newGate puts a gate before a store whose calls all share pipelines from now on.
func newGate(t *testing.T, s *Store) *gate {
	t.Helper()
	g := &gate{entered: make(chan struct{}), release: make(chan struct{})}
	crowd(t, s)
	s.client.Redis().AddHook(pipelineHook(g.send))
	return g
}

func (g *gate) send(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error {
	scripts := false
	for _, command := range commands { // a plain read of a call that came late may be among them
		if name := command.Name(); name == "evalsha" || name == "eval" {
			g.sent.Store(fmt.Sprint(command.Args()[1]), true)
			scripts = true
		}
	}
	if scripts && g.armed.CompareAndSwap(true, false) {
		g.entered <- struct{}{}
		<-g.release
	}
	return next(ctx, commands)
}

// pass makes the calls at once, so that they share a pipeline, and waits for their ends.
func (g *gate) pass(t *testing.T, s *Store, calls ...func()) {
	t.Helper()
	var group sync.WaitGroup
	g.armed.Store(true)
	group.Go(func() {
		_, _ = s.client.Run(context.Background(), kernel.OwnFlow, crowdReads, []string{s.keys.Prefix + "crowd:0"})
	})
	<-g.entered
	defer redistest.WaitAtMost(t, 30*time.Second, &group)
	defer func() { g.release <- struct{}{} }()
	for _, call := range calls {
		group.Go(call)
	}
	eventually(t, "all wait", func() bool { // and perhaps what the store does in the background
		return redistest.Gathered(t, s.client, "remit_redis_calls_waiting")["calls "] >= float64(len(calls))
	})
}

// onEachSingle runs the test on miniredis and on a real Redis: on a cluster, calls for several agents share no command.
func onEachSingle(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	t.Parallel()
	onMiniredis(t, Config{}, test)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		redistest.SkipIfShort(t)
		test(t, openLeastPrivileged(t, Config{}, realRedis))
	})
}

func TestEachOperationWorksWhileItSharesCommands(t *testing.T) {
	onEachSingle(t, func(t *testing.T, s *Store) {
		const callers = 3
		var operations [callers][]operation
		for i := range operations {
			operations[i], _ = newOperations(t, s)
		}
		g := newGate(t, s)
		for i, operation := range operations[0] {
			if operation.script.MergedSHA() == "" {
				continue
			}
			var calls []func()
			for caller := range callers {
				calls = append(calls, func() {
					wantError(t, operation.name, operations[caller][i].do(context.Background(), s), nil)
				})
			}
			g.pass(t, s, calls...)
		}
		token := newSpender(t, s).caller.Token
		check := func() { wantError(t, "checking a token", s.CheckToken(context.Background(), *token), nil) }
		g.pass(t, s, check, check, check)
		for _, script := range []*script{
			kernel.CheckToken, getSession, exchangeSecret.Script, exchangeSecret.Proven, rotateRefresh.Script, chargeSession.Script, chargeSession.Keyed, kernel.AuthenticateOrganization,
		} {
			if _, sent := g.sent.Load(script.MergedSHA()); !sent {
				t.Errorf("no calls of %s were merged", script.Name())
			}
		}
	})
}

// Of equal charges with one idempotency key the first in a command is made, and the others get its outcome.
func TestEqualChargesThatShareACommandAreMadeOnce(t *testing.T) {
	onEachSingle(t, func(t *testing.T, s *Store) {
		const callers = 6
		by := newSpender(t, s)
		g := newGate(t, s)
		for round := range int64(2) { // Redis does not know the script in the first
			key := uuid.NewString()
			var made atomic.Int64
			calls := slices.Repeat([]func(){func() {
				idem := &Idempotency{Key: key}
				usage, err := s.Charge(context.Background(), by.caller, by.session.ID, Charge{Count: 1, Value: 3, Idempotency: idem})
				if err != nil || usage.ActionCount != round+1 || usage.ValueUsed != money.MicroUSD(3*(round+1)) {
					t.Errorf("%+v, %v", usage, err)
				}
				if !idem.Outcome.Replayed {
					made.Add(1)
				}
			}}, callers)
			g.pass(t, s, calls...)
			wantEqual(t, "how many were made", made.Load(), 1)
		}
		if _, sent := g.sent.Load(chargeSession.Keyed.MergedSHA()); !sent {
			t.Error("no calls were merged")
		}
	})
}

// A charge that notes a limit writes twice. If Redis fails the second write, the charge may have happened.
func TestAChargeThatFailsAfterItsFirstWriteIsInDoubtByItself(t *testing.T) {
	onEachSingle(t, func(t *testing.T, s *Store) {
		before, corrupt, behind := newSpender(t, s), newSpender(t, s), newSpender(t, s)
		broken := s.keys.Events(corrupt.agent.ID)
		must(peek(t, s).Del(t.Context(), broken).Result())(t)
		must(peek(t, s).Set(t.Context(), broken, "no stream", 0).Result())(t)
		g := newGate(t, s)
		charge := func(by spender, count int64, want error) func() {
			return func() {
				wantError(t, "a charge", errOf(s.Charge(context.Background(), by.caller, by.session.ID, Charge{Count: count})), want)
			}
		}
		g.pass(t, s, charge(before, 1, nil), charge(corrupt, 9, ErrOutcomeUnknown), charge(behind, 1, nil))
		for i, by := range []spender{before, corrupt, behind} {
			used := must(peek(t, s).HGet(t.Context(), s.keys.Session(by.agent.ID, by.session.ID), "n").Int64())(t)
			wantEqual(t, "the actions that are used", used, []int64{1, 9, 1}[i])
		}
	})
}

// spender is a tenant whose agent may charge its session.
type spender struct {
	tenant
	caller Caller
}

func newSpender(t *testing.T, s *Store) spender {
	t.Helper()
	w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
	return spender{w, byToken(w.exchange(t, s))}
}
