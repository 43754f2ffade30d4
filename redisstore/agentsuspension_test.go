package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
	"remit/test/suite"
)

// createAgents creates agents of the tenant's organization, several at once.
func (w tenant) createAgents(t *testing.T, s *Store, count int) []uuid.UUID {
	t.Helper()
	ids := make([]uuid.UUID, count)
	mustDo(t, eachOf(t.Context(), count, func(ctx context.Context, i int) error {
		created, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout", Scopes: []string{"read"}}, w.secret, nil)
		ids[i] = created.ID
		return err
	}))
	return ids
}

func TestAllAgentsAreSuspendedOverSeveralPages(t *testing.T) {
	t.Parallel()
	onRealRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) { // in miniredis on a busy machine a pipeline would take seconds
		count := agentsAtOnce + 20
		if suite.Long {
			count = 10_000
		}
		w := newTenant(t, s, NewSession{MaxActions: 10})
		ids := append(w.createAgents(t, s, count-1), w.agent.ID)
		wantEqual(t, "how many are suspended", must(s.SuspendAgents(t.Context(), w.key, "drill"))(t), int64(count)) // how long it takes: bench/
		for i := 0; i < count; i += 1 + count/97 {
			agent := must(s.Agent(t.Context(), w.key, ids[i]))(t)
			exchange := errOf(s.ExchangeSecret(t.Context(), ids[i], w.secret, GrantRequest{}))
			wantError(t, "exchange", exchange, &AgentSuspendedError{Since: agent.Suspended})
			if agent.SuspensionReason != "drill" || agent.Status() != Active {
				t.Errorf("%+v", agent)
			}
		}
		wantEqual(t, "how many are resumed", must(s.ResumeAgents(t.Context(), w.key, ""))(t), int64(count))
		must(s.ExchangeSecret(t.Context(), ids[count/2], w.secret, GrantRequest{}))(t)

		w.breakOffSuspension(t, s)
		first := w.suspended(t, s, ids)
		if len(first) == 0 || len(first) == count {
			t.Errorf("%d of %d are suspended by what broke off midway", len(first), count)
		}
		wantEqual(t, "how many are suspended by the repetition", must(s.SuspendAgents(t.Context(), w.key, "again"))(t), int64(count))
		again := w.suspended(t, s, ids)
		for id, since := range first {
			wantEqual(t, "since when one is suspended", again[id], since)
		}
		wantEqual(t, "how many are suspended", len(again), count)
	})
}

// suspended returns since when those of the agents are suspended that are.
func (w tenant) suspended(t *testing.T, s *Store, ids []uuid.UUID) map[uuid.UUID]time.Time {
	t.Helper()
	since, stored := map[uuid.UUID]time.Time{}, make([]*redis.StringCmd, len(ids))
	_, _ = peek(t, s).Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, id := range ids {
			stored[i] = p.HGet(t.Context(), s.keys.Agent(id), "suspended")
		}
		return nil
	})
	for i, at := range stored {
		ms, err := at.Int64()
		switch err {
		case nil:
			since[ids[i]] = time.UnixMilli(ms)
		case redis.Nil:
		default:
			t.Fatal(err)
		}
	}
	return since
}

// breakOffSuspension suspends all agents, and goes away when the first of them are.
func (w tenant) breakOffSuspension(t *testing.T, s *Store) {
	t.Helper()
	ctx, goAway := context.WithCancel(t.Context())
	defer goAway()
	mustDo(t, s.client.ForEachPrimary(t.Context(), func(_ context.Context, server *redis.Client) error {
		server.AddHook(pipelineHook(func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error {
			err := next(ctx, commands)
			if err == nil {
				goAway()
			}
			return err
		}))
		return nil
	}))
	if _, err := s.SuspendAgents(ctx, w.key, "broken off"); err == nil {
		t.Error("what broke off midway is acknowledged")
	}
}

// A suspension that broke off midway is completed by its repetition, which keeps the times of the first.
func TestASuspensionOfAllAgentsMayBeRepeated(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		rest := w.createAgents(t, s, 3)
		first := must(s.SuspendAgent(t.Context(), w.key, rest[1], "first"))(t)
		must(s.RevokeAgent(t.Context(), w.key, rest[2]))(t)
		for range 2 {
			wantEqual(t, "how many are suspended", must(s.SuspendAgents(t.Context(), w.key, "second"))(t), 3)
			wantEqual(t, "the one that was suspended first", must(s.Agent(t.Context(), w.key, rest[1]))(t), first)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.ResumeAgents(cancelled, w.key, ""); err == nil {
			t.Error("a cancelled resumption succeeds")
		}
	})
}

func TestAChangedAgentsMemoryIsCounted(t *testing.T) {
	onTenant(t, Config{UsageEvery: time.Hour}, func(t *testing.T, s *Store, w tenant) {
		held := func() int64 { // without the events: they are counted when the account is synced
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
			wantEqual(t, name+": what is held without them", held(), before)
		}
		created := must(s.CreateAgent(t.Context(), w.key, Agent{Name: "n", Scopes: []string{}, JWKS: long}, [32]byte{3}, nil))(t)
		if grown := held() - before; grown < kernel.AgentSize+4000 || grown > kernel.AgentSize+8000 {
			t.Errorf("agent %s with 4000 bytes of keys counts as %d", created.ID, grown)
		}
	})
}
