package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/test/suite"
)

// upgrade is a rolling upgrade: instances of two versions on one Redis, under load.
type upgrade struct {
	versions [2]version
	tenant   tenant
	sessions []*countedSession
}

// countedSession is a session, and what it must have come to.
type countedSession struct {
	id      uuid.UUID
	actions atomic.Int64
	value   atomic.Int64
}

// added is what a step has charged.
type added struct {
	actions int64
	value   money.MicroUSD
}

// upgradeStep is one use of a session by the two versions, in either order.
type upgradeStep struct {
	name string
	do   func(ctx context.Context, one, other version, token AccessToken, session uuid.UUID) (added, error)
}

var upgradeSteps = []upgradeStep{
	{"charge", func(ctx context.Context, one, _ version, token AccessToken, session uuid.UUID) (added, error) {
		c := Charge{Count: 1 + rand.Int64N(3), Value: money.MicroUSD(rand.Int64N(3) * 700), Scope: []string{"", "read"}[rand.IntN(2)],
			ActionType: []string{"", "llm.call", "pay"}[rand.IntN(3)]}
		_, err := one.charge(ctx, token, session, c)
		return added{c.Count, c.Value}, err
	}},
	{"charge with a key, and the other repeats it", chargeAndRepeat},
	{"batch", func(ctx context.Context, one, _ version, token AccessToken, session uuid.UUID) (added, error) {
		return added{3, 5}, one.batch(ctx, token, session, []Charge{{Count: 1, Value: 5}, {Count: 2, Scope: "write"}})
	}},
	{"hold, and the other commits a part", func(ctx context.Context, one, other version, token AccessToken, session uuid.UUID) (added, error) {
		id, err := one.begin(ctx, token, holding(session, time.Hour))
		return added{1, 400}, cmp.Or(err, other.commit(ctx, token, session, id, 400))
	}},
	{"hold, and the other rolls back", func(ctx context.Context, one, other version, token AccessToken, session uuid.UUID) (added, error) {
		id, err := one.begin(ctx, token, holding(session, time.Hour))
		return added{1, 0}, cmp.Or(err, other.rollback(ctx, token, session, id))
	}},
	{"hold that nobody settles", func(ctx context.Context, one, _ version, token AccessToken, session uuid.UUID) (added, error) {
		_, err := one.begin(ctx, token, holding(session, soon))
		return added{1, 0}, err
	}},
	{"read by both", func(ctx context.Context, one, other version, token AccessToken, session uuid.UUID) (added, error) {
		a, err := one.read(ctx, token, session)
		b, otherErr := other.read(ctx, token, session)
		if b.ActionCount < a.ActionCount || a.MaxValue != b.MaxValue || a.Expires != b.Expires {
			err = cmp.Or(err, fmt.Errorf("%+v, then %+v", a, b))
		}
		return added{}, cmp.Or(err, otherErr)
	}},
}

func chargeAndRepeat(ctx context.Context, one, other version, token AccessToken, session uuid.UUID) (added, error) {
	key, usages, replayed := uuid.NewString(), [2]Usage{}, [2]bool{}
	for i, by := range []version{one, other} {
		c := Charge{Count: 2, Value: 30, Idempotency: &Idempotency{Key: key, Fingerprint: [32]byte{1}}}
		var err error
		if usages[i], err = by.charge(ctx, token, session, c); err != nil {
			return added{}, err
		}
		replayed[i] = c.Idempotency.Replayed
	}
	if usages[0] != usages[1] || replayed != [2]bool{false, true} {
		return added{}, fmt.Errorf("%+v, replayed %t", usages, replayed)
	}
	return added{2, 30}, nil
}

// soon is a lifetime of holds that nobody settles.
const soon = 30 * time.Millisecond

func holding(session uuid.UUID, lifetime time.Duration) NewTransaction {
	return NewTransaction{Session: session, Value: 900, Lifetime: lifetime, ActionType: "pay", PreState: "{}"}
}

func TestTwoVersionsSideBySideRefuseNothingAndLoseNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		u := newUpgrade(t, s)
		rounds := 60
		if suite.Long {
			rounds = 1000
		}
		var workers sync.WaitGroup
		for i := range 6 {
			workers.Go(func() { u.work(t, i, rounds) })
		}
		workers.Wait()
		for _, session := range u.sessions {
			u.wantSums(t, session)
		}
		u.wantUsage(t, s)
		u.endEach(t)
	})
}

// wantUsage checks that the lines of usage add up to what both versions have charged.
func (u *upgrade) wantUsage(t *testing.T, s *Store) {
	t.Helper()
	var lines []UsageLine
	for _, session := range u.sessions {
		sum := UsageLine{Session: session.id}
		for _, used := range must(s.SessionUsage(t.Context(), u.tenant.byKey(), session.id))(t) {
			sum.ActionCount += used.ActionCount
			sum.Value += used.Value
		}
		if want := (UsageLine{Session: session.id, ActionCount: session.actions.Load(), Value: money.MicroUSD(session.value.Load())}); sum != want {
			t.Errorf("by action type %+v, want %+v", sum, want)
		}
		lines = append(lines, sum)
	}
	slices.SortFunc(lines, func(a, b UsageLine) int { return slices.Compare(a.Session[:], b.Session[:]) })
	u.tenant.wantReport(t, s, everyDay(BySession), lines...)
}

// The version before tells of no thresholds, and keeps what is noted of them. What it crosses is told by the next charge of this one.
func TestThresholdsAreToldOnceBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		own := Thresholds{30, 60, 90}
		w, old := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000, Thresholds: own}), versionBeside(t, s)
		token := w.exchange(t, s).AccessToken
		var want []string
		step := func(byOld int64, tells ...string) {
			t.Helper()
			must(old.charge(t.Context(), token, w.session.ID, Charge{Count: byOld, Value: money.MicroUSD(byOld)}))(t)
			w.wantTold(t, s, want...)
			w.charge(t, s, 1, 1)
			want = append(want, tells...)
			w.wantTold(t, s, want...)
		}
		step(350, "30 max_actions", "30 max_value_usd")
		step(100)
		step(460, "60 max_actions", "90 max_actions", "60 max_value_usd", "90 max_value_usd")
		begun := must(old.begin(t.Context(), token, NewTransaction{Session: w.session.ID, Value: 80, Lifetime: time.Hour, ActionType: "pay", PreState: "{}"}))(t)
		wantError(t, "a rollback", old.rollback(t.Context(), token, w.session.ID, begun), nil)
		step(80)
		to := NewLimits{MaxActions: new(int64(4000)), MaxValue: new(money.MicroUSD(4000))} // a quarter is used
		if got := must(s.ChangeLimits(t.Context(), w.key, w.session.ID, to))(t).Thresholds; !slices.Equal(got, own) {
			t.Errorf("thresholds are %v", got)
		}
		step(100)
		step(200, "30 max_actions", "30 max_value_usd")

		w.session.ID = must(old.create(t.Context(), w, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: time.Hour}))(t)
		step(78)
		step(5, "80 max_actions", "80 max_value_usd")
	})
}

func newUpgrade(t *testing.T, s *Store) *upgrade {
	t.Helper()
	old := must(Open(s.config))(t)
	t.Cleanup(func() { _ = old.Close() })
	u := &upgrade{versions: [2]version{before{old}, present{s}}, tenant: newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 1})}
	committed := 1_000_000 * money.USD
	for i := range 8 {
		n := NewSession{Agent: u.tenant.agent.ID, MaxActions: MostActions, MaxValue: 1_000_000 * money.USD, Lifetime: time.Hour}
		if i >= 6 {
			n.MaxCommitted = &committed
		}
		session := &countedSession{id: must(u.versions[i%2].create(t.Context(), u.tenant, n))(t)}
		u.sessions = append(u.sessions, session)
	}
	return u
}

// work takes steps with an access token of its own, which either version refreshes.
func (u *upgrade) work(t *testing.T, worker, rounds int) {
	ctx := t.Context()
	token, err := u.versions[worker%2].exchange(ctx, u.tenant)
	for round := 0; err == nil && round < rounds; round++ {
		first := rand.IntN(2)
		one, other := u.versions[first], u.versions[1-first]
		step, session := upgradeSteps[rand.IntN(len(upgradeSteps))], u.sessions[rand.IntN(len(u.sessions))]
		got, stepErr := step.do(ctx, one, other, token, session.id)
		session.actions.Add(got.actions)
		session.value.Add(int64(got.value))
		generation, refreshErr := one.refresh(ctx, token, uint32(round+1))
		if generation != uint32(round+2) {
			t.Errorf("generation %d after %d refreshes", generation, round+1)
		}
		if err = cmp.Or(stepErr, refreshErr, other.check(ctx, token)); err != nil {
			t.Errorf("%s by %T and %T", step.name, one, other)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// wantSums reads the session by both versions, once its last hold is due.
func (u *upgrade) wantSums(t *testing.T, session *countedSession) {
	t.Helper()
	time.Sleep(soon)
	token := must(u.versions[1].exchange(t.Context(), u.tenant))(t)
	for _, v := range u.versions {
		got := must(v.read(t.Context(), token, session.id))(t)
		if got.ActionCount != session.actions.Load() || int64(got.ValueUsed) != session.value.Load() || got.ValueHeld != 0 {
			t.Errorf("%T reads %d actions, %d used, %d held; want %d and %d", v, got.ActionCount, got.ValueUsed, got.ValueHeld,
				session.actions.Load(), session.value.Load())
		}
	}
}

// endEach ends each session by one version; the other knows.
func (u *upgrade) endEach(t *testing.T) {
	t.Helper()
	token := must(u.versions[0].exchange(t.Context(), u.tenant))(t)
	for i, session := range u.sessions {
		wantError(t, "end", u.versions[i%2].end(t.Context(), token, session.id), nil)
		for _, v := range u.versions {
			_, err := v.charge(t.Context(), token, session.id, Charge{Count: 1})
			var over *NotActiveError
			if !errors.As(err, &over) || over.Status != Completed {
				t.Errorf("%T charges an ended session: %v", v, err)
			}
		}
	}
}

func TestTwoVersionsChargeOneSessionToItsLimit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		u := newUpgrade(t, s)
		for i := range u.versions {
			n := NewSession{Agent: u.tenant.agent.ID, MaxActions: 50, MaxValue: 50 * 7, Lifetime: time.Hour}
			session := must(u.versions[i].create(t.Context(), u.tenant, n))(t)
			var granted atomic.Int64
			var workers sync.WaitGroup
			for worker := range 6 {
				workers.Go(func() { granted.Add(u.exhaust(t, u.versions[worker%2], session)) })
			}
			workers.Wait()
			if granted.Load() != n.MaxActions {
				t.Errorf("%d of %d actions were granted", granted.Load(), n.MaxActions)
			}
			u.wantEachNoteOnce(t, s, session)
		}
	})
}

// exhaust charges until the limit refuses, and returns how often that was not yet so.
func (u *upgrade) exhaust(t *testing.T, v version, session uuid.UUID) (granted int64) {
	token, err := v.exchange(t.Context(), u.tenant)
	if err != nil {
		t.Error(err)
		return 0
	}
	for {
		_, err := v.charge(t.Context(), token, session, Charge{Count: 1, Value: 7})
		var limit *LimitError
		if errors.As(err, &limit) && limit.Limit == "max_actions" && limit.Usage.ActionCount == 50 && limit.Usage.ValueUsed == 350 {
			return granted
		}
		if err != nil {
			t.Errorf("%T: %v", v, err)
			return granted
		}
		granted++
	}
}

// wantEachNoteOnce checks the audit trail: each limit was warned of and reached, and each of that is noted once.
func (u *upgrade) wantEachNoteOnce(t *testing.T, s *Store, session uuid.UUID) {
	t.Helper()
	var notes []string
	told := map[string]int{}
	for _, e := range u.tenant.follow(s)(t) {
		if e.Session == session && e.Type == budgetThreshold {
			threshold := fmt.Sprint(e.Limit, " ", e.Threshold)
			if told[threshold]++; told[threshold] > 1 {
				t.Errorf("told again: %+v", e)
			}
		} else if e.Session == session && e.Limit != "" {
			notes = append(notes, fmt.Sprint(strings.TrimPrefix(e.Type, "session."), " ", e.Limit))
		}
	}
	want := "limit_warning max_actions, limit_warning max_value_usd, limit_reached max_actions, limit_reached max_value_usd"
	if got := strings.Join(notes, ", "); got != want {
		t.Errorf("the audit trail says %s; want %s", got, want)
	}
}
