package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
	"remit/test/suite"
)

func TestTheFairShareTakesFromThoseThatHoldMost(t *testing.T) {
	t.Parallel()
	const most = 100_000
	for _, c := range []struct {
		name  string
		held  []int64
		used  int64
		full  int64
		share int64
	}{
		{"there is room", []int64{30_000, 20_000}, 69_900, 70_000, kernel.Unbounded},
		{"the largest gives all", []int64{50_000, 10_000, 15_000}, 75_000, 70_000, 45_000},
		{"down to the next", []int64{40_000, 30_000, 5_000}, 75_000, 70_000, 35_000},
		{"two give alike", []int64{30_000, 40_000, 5_000}, 90_000, 70_000, 25_000},
		{"never below an equal part", []int64{2_000, 1_000}, 99_000, 70_000, 35_000},
		{"nor with what no organization accounts for", []int64{10_000, 5_000, 5_000, 5_000}, 100_000, 70_000, 17_500},
		{"alone", []int64{99_900}, 100_000, 100_000, kernel.Unbounded},
		{"none", nil, 100_000, 100_000, kernel.Unbounded},
		{"nearly alone, with room", []int64{88_000, 50}, 88_500, 90_000, kernel.Unbounded},
		{"nearly alone, without room", []int64{93_000, 50}, 93_500, 90_000, 89_500},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			full, share := kernel.FairShare(c.held, c.used, most)
			wantEqual(t, "from where on, and how much each has", []int64{full, share}, []int64{c.full, c.share})
		})
	}
}

// fill begins transactions with large states until one is refused, and returns with what.
func fill(ctx context.Context, s *Store, g Grant, state string, most int) error {
	for range most {
		_, err := s.Begin(ctx, g.AccessToken, NewTransaction{ActionType: "a", PreState: state, Lifetime: time.Hour})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAnOrganizationThatFillsRedisIsRefusedBeforeOthersAre(t *testing.T) {
	t.Parallel()
	s, admin := withOwnRedis(t, Config{})
	const most = 40 << 20
	must(admin.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(most)).Result())(t)
	hostile, honest := newTenant(t, s, NewSession{MaxActions: 10}), newTenant(t, s, NewSession{MaxActions: 10})
	filler, worker := hostile.exchange(t, s), honest.exchange(t, s)
	mustDo(t, fill(t.Context(), s, worker, `{"s":"`+strings.Repeat("x", 50_000)+`"}`, 20)) // so that it is of note
	eventually(t, "what it holds is told", func() bool {
		score, _ := admin.ZScore(t.Context(), s.keys.Holdings(), string(honest.key.Organization[:])).Result()
		return score > 1<<20
	})
	err := fill(t.Context(), s, filler, `{"s":"`+strings.Repeat("x", 60_000)+`"}`, 2000)
	var refused *QuotaError
	if !errors.As(err, &refused) || refused.Quota != "bytes" {
		t.Fatalf("it is refused with %v", err)
	}
	used, _ := s.core.MemoryUsed(t.Context())
	if part := float64(used) / most; part < 0.65 || part > 0.9 { // some is written between two readings of the memory
		t.Errorf("Redis is %.2f full", part)
	}
	for range 50 {
		mustDo(t, fill(t.Context(), s, worker, `{"s":"small"}`, 5))
		honest.exchange(t, s)
		if err := fill(t.Context(), s, filler, `{}`, 1); !errors.As(err, &refused) {
			t.Fatalf("the one that holds most: %v", err)
		}
	}
	must(s.Charge(t.Context(), byToken(filler), hostile.session.ID, Charge{Count: 1}))(t) // it takes no memory
	must(s.RevokeAgent(t.Context(), hostile.key, hostile.agent.ID))(t)
}

// What organizations are said to hold is near what Redis needs for it.
func TestTheBytesOfUsageAreNearThoseOfRedis(t *testing.T) {
	t.Parallel()
	const tolerance = 0.25
	text := func(n int) string { return `{"s":"` + strings.Repeat("x", n) + `"}` }
	kinds := map[string]struct {
		count  int
		create func(context.Context, *Store, tenant, Grant) error
	}{
		"agents":                            {2000, quotaCases[0].create},
		"sessions":                          {4000, quotaCases[1].create},
		"transactions":                      {4000, quotaCases[2].create},
		"families":                          {4000, quotaCases[3].create},
		"keys of agents":                    {4000, quotaCases[4].create},
		"keys of the organization":          {4000, quotaCases[5].create},
		"keys of batches":                   {4000, quotaCases[6].create},
		"transactions of 100 bytes":         {4000, beginWith(text(100), "")},
		"transactions in a session":         {4000, beginInSession("{}")},
		"transactions of 1 kB in a session": {2000, beginInSession(text(1000))},
		"transactions of 3 kB":              {2000, beginWith(text(3000), "")},
		"transactions of 40 kB":             {500, beginWith(text(40_000), text(200))},
		"transactions of 65,536":            {400, beginWith(text(65_528), "")},
		"sessions with metadata": {2000, func(ctx context.Context, s *Store, w tenant, _ Grant) error {
			return errOf(s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour, Metadata: text(1000)}))
		}},
		"agents with metadata": {1000, func(ctx context.Context, s *Store, w tenant, _ Grant) error {
			return errOf(s.CreateAgent(ctx, w.key, Agent{Name: "n", Description: text(500), Metadata: text(5000)}, [32]byte{3}, nil))
		}},
		"proofs": {4000, func(ctx context.Context, s *Store, _ tenant, g Grant) error {
			return s.UseProof(ctx, bound(g), *newProof(1))
		}},
		"assertions": {4000, func(ctx context.Context, s *Store, w tenant, _ Grant) error {
			a := w.assertion(0)
			rand.Read(a.ID[:])
			return s.CheckAssertion(ctx, a)
		}},
	}
	for name, kind := range kinds {
		if strings.Contains(name, " of ") && !strings.HasPrefix(name, "keys of ") && !suite.Long {
			continue // what is kept is the same, in other sizes
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, real := bytesEach(t, Config{}, kind.count, kind.create)
			if said < real*(1-tolerance) || said > real*(1+tolerance) {
				t.Errorf("%.0f B each, Redis needs %.0f B", said, real)
			}
		})
	}
}

func beginWith(state, metadata string) func(context.Context, *Store, tenant, Grant) error {
	return func(ctx context.Context, s *Store, w tenant, g Grant) error {
		n := NewTransaction{ActionType: "call", PreState: state, Metadata: metadata, Lifetime: time.Hour}
		return errOf(s.Begin(ctx, g.AccessToken, n))
	}
}

func beginInSession(state string) func(context.Context, *Store, tenant, Grant) error {
	return func(ctx context.Context, s *Store, w tenant, g Grant) error {
		n := NewTransaction{ActionType: "call", PreState: state, Session: w.session.ID, Value: 1, Lifetime: time.Hour}
		return errOf(s.Begin(ctx, g.AccessToken, n))
	}
}

// Holdings that were published long ago, and are gone since, do not hide the organizations that hold most now.
func TestOldHoldingsAreReadAgainUnderPressure(t *testing.T) {
	t.Parallel()
	s, admin := withOwnRedis(t, Config{})
	gone, idle := NewRootID(), newTenant(t, s, NewSession{MaxActions: 1})
	usageOf(t, s, idle.key.Organization)
	s.core.Usage.Accounts.Purge()
	for _, id := range []uuid.UUID{gone, idle.key.Organization} {
		must(admin.Do(t.Context(), "ZADD", s.keys.Holdings(), 1<<30, string(id[:])).Result())(t)
	}
	used := must(strconv.Atoi(redisclient.Info(t.Context(), admin, "memory")["used_memory"]))(t)
	must(admin.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(used*5/4)).Result())(t)
	eventually(t, "the holdings are right", func() bool {
		s.core.PollMemory()
		_, err := admin.ZScore(t.Context(), s.keys.Holdings(), string(gone[:])).Result()
		score, _ := admin.ZScore(t.Context(), s.keys.Holdings(), string(idle.key.Organization[:])).Result()
		return err != nil && score < 1<<20
	})
}
