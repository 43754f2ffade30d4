package redisstore

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/suite"
)

// createAgents creates agents of the tenant's organization, several at once.
func (w tenant) createAgents(t *testing.T, s *Store, count int) []uuid.UUID {
	t.Helper()
	ids := make([]uuid.UUID, count)
	var workers sync.WaitGroup
	for worker := range 16 {
		workers.Go(func() {
			for i := worker; i < count; i += 16 {
				created, err := s.CreateAgent(context.Background(), w.key, Agent{Name: "scout", Scopes: []string{"read"}}, w.secret, nil)
				if err != nil {
					t.Error(err)
				}
				ids[i] = created.ID
			}
		})
	}
	workers.Wait()
	return ids
}

func TestAllAgentsAreSuspendedOverSeveralPages(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		count := agentsAtOnce + 20
		if suite.Long && !strings.HasSuffix(t.Name(), "/miniredis") { // whose interpreter the race detector makes ten times as slow
			count = 10_000
		}
		w := newTenant(t, s, NewSession{MaxActions: 10})
		ids := append(w.createAgents(t, s, count-1), w.agent.ID)
		if got := must(s.SuspendAgents(t.Context(), w.key, "drill"))(t); got != int64(count) { // how long it takes: bench/
			t.Errorf("%d are suspended, want %d", got, count)
		}
		for i := 0; i < count; i += 1 + count/97 {
			agent := must(s.Agent(t.Context(), w.key, ids[i]))(t)
			_, err := s.ExchangeSecret(t.Context(), ids[i], w.secret, GrantRequest{})
			wantError(t, "exchange", err, &AgentSuspendedError{Since: agent.Suspended})
			if agent.SuspensionReason != "drill" || agent.Status() != Active {
				t.Errorf("%+v", agent)
			}
		}
		if got := must(s.ResumeAgents(t.Context(), w.key, ""))(t); got != int64(count) {
			t.Errorf("%d are resumed, want %d", got, count)
		}
		must(s.ExchangeSecret(t.Context(), ids[count/2], w.secret, GrantRequest{}))(t)

		w.breakOffSuspension(t, s)
		first := w.suspended(t, s, ids)
		if len(first) == 0 || len(first) == count {
			t.Errorf("%d of %d are suspended by what broke off midway", len(first), count)
		}
		if got := must(s.SuspendAgents(t.Context(), w.key, "again"))(t); got != int64(count) {
			t.Errorf("%d are suspended by the repetition, want %d", got, count)
		}
		again := w.suspended(t, s, ids)
		for id, since := range first {
			if !again[id].Equal(since) {
				t.Errorf("suspended since %v became %v", since, again[id])
			}
		}
		if len(again) != count {
			t.Errorf("%d are suspended, want %d", len(again), count)
		}
	})
}

// suspended returns since when those of the agents are suspended that are.
func (w tenant) suspended(t *testing.T, s *Store, ids []uuid.UUID) map[uuid.UUID]time.Time {
	t.Helper()
	since, cmds := map[uuid.UUID]time.Time{}, make([]*redis.StringCmd, len(ids))
	_, err := peek(t, s).Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, id := range ids {
			cmds[i] = p.HGet(t.Context(), s.keys.Agent(id), "suspended")
		}
		return nil
	})
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	for i, cmd := range cmds {
		if ms, err := cmd.Int64(); err == nil {
			since[ids[i]] = time.UnixMilli(ms)
		}
	}
	return since
}

// breakOffSuspension suspends all agents, and goes away when the first of them are.
func (w tenant) breakOffSuspension(t *testing.T, s *Store) {
	t.Helper()
	ctx, goAway := context.WithCancel(t.Context())
	defer goAway()
	err := s.client.ForEachPrimary(t.Context(), func(_ context.Context, server *redis.Client) error {
		server.AddHook(afterPipeline(goAway))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SuspendAgents(ctx, w.key, "broken off"); err == nil {
		t.Error("what broke off midway is acknowledged")
	}
}

// afterPipeline is called after every pipeline that succeeds.
type afterPipeline func()

func (afterPipeline) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (afterPipeline) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h afterPipeline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err == nil {
			h()
		}
		return err
	}
}

// A suspension that broke off midway is completed by its repetition, which keeps the times of the first.
func TestASuspensionOfAllAgentsMayBeRepeated(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		rest := w.createAgents(t, s, 3)
		first := must(s.SuspendAgent(t.Context(), w.key, rest[1], "first"))(t)
		must(s.RevokeAgent(t.Context(), w.key, rest[2]))(t)
		for range 2 {
			if got := must(s.SuspendAgents(t.Context(), w.key, "second"))(t); got != 3 {
				t.Errorf("%d are suspended, want 3", got)
			}
			if got := must(s.Agent(t.Context(), w.key, rest[1]))(t); !reflect.DeepEqual(got, first) {
				t.Errorf("%+v, want %+v", got, first)
			}
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.ResumeAgents(cancelled, w.key, ""); err == nil {
			t.Error("a cancelled resumption succeeds")
		}
	})
}

func TestASessionThatWasResumedIsStoredAsBefore(t *testing.T) {
	t.Parallel()
	most := money.MicroUSD(50)
	for name, n := range map[string]NewSession{
		"plain": {MaxActions: 10, MaxValue: 100}, "with max_committed": {MaxActions: 10, MaxValue: 100, MaxCommitted: &most},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, n)
				must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 7}))(t)
				key := s.keys.Session(w.agent.ID, w.session.ID)
				before := must(peek(t, s).HGetAll(t.Context(), key).Result())(t)
				suspended := must(s.SuspendSession(t.Context(), w.key, w.session.ID, "why"))(t)
				read := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
				if !reflect.DeepEqual(suspended, read) || read.Suspended.IsZero() || read.RemainingValue() != min(93, 43+50*money.MicroUSD(oneIfNil(n.MaxCommitted))) {
					t.Errorf("suspended as %+v, read as %+v", suspended, read)
				}
				must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t)
				if after := must(peek(t, s).HGetAll(t.Context(), key).Result())(t); !reflect.DeepEqual(before, after) {
					t.Errorf("%v became %v", before, after)
				}
			})
		})
	}
}

func oneIfNil(most *money.MicroUSD) int {
	if most == nil {
		return 1
	}
	return 0
}

func TestAChangedAgentsMemoryIsCounted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		held := func() int64 {
			a := s.core.Usage.Account(w.key.Organization)
			a.Mu.Lock()
			defer a.Mu.Unlock()
			return a.Used()[kernel.BytesHeld]
		}
		before, long, short := held(), `{"k":"`+strings.Repeat("x", 4000)+`"}`, ""
		many := make([]string, 16)
		for i := range many {
			many[i] = "https://a.example/" + strings.Repeat("x", 230)
		}
		for name, c := range map[string]struct{ more, less AgentChanges }{
			"metadata":  {AgentChanges{Metadata: &long}, AgentChanges{Metadata: &short}},
			"jwks":      {AgentChanges{JWKS: &long}, AgentChanges{JWKS: &short}},
			"jwks_uri":  {AgentChanges{JWKSURI: &long}, AgentChanges{JWKSURI: &short}},
			"audiences": {AgentChanges{Audiences: &many}, AgentChanges{Audiences: new([]string)}},
		} {
			must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, c.more))(t)
			if grown := held() - before; grown < 3900 || grown > 8000 {
				t.Errorf("%s: 4000 bytes more count as %d", name, grown)
			}
			must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, c.less))(t)
			if got := held(); got != before {
				t.Errorf("%s: without them %d are held, want %d", name, got, before)
			}
		}
		created := must(s.CreateAgent(t.Context(), w.key, Agent{Name: "n", Scopes: []string{}, JWKS: long}, [32]byte{3}, nil))(t)
		if grown := held() - before; grown < kernel.AgentSize+4000 || grown > kernel.AgentSize+8000 {
			t.Errorf("agent %s with 4000 bytes of keys counts as %d", created.ID, grown)
		}
	})
}
