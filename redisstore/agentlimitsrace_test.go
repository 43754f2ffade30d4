package redisstore

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/test/redistest"
)

// crowdOfSessions is one agent with 20 sessions, which two instances use at once.
type crowdOfSessions struct {
	tenant
	instances [2]*Store
	sessions  []uuid.UUID
}

const sessionsOfCrowd = 20

func newCrowd(t *testing.T, s *Store, l AgentLimits) *crowdOfSessions {
	t.Helper()
	n := NewSession{MaxValue: money.USD, MaxLease: time.Minute}
	c := &crowdOfSessions{tenant: limitedTenant(t, s, l, n), instances: [2]*Store{s, anotherInstance(t, s)}}
	c.sessions = append(c.sessions, c.session.ID)
	for range sessionsOfCrowd - 1 {
		c.sessions = append(c.sessions, c.another(t, s, n).session.ID)
	}
	return c
}

// each calls do for every session by each instance, all at once.
func (c *crowdOfSessions) each(t *testing.T, do func(s *Store, session uuid.UUID, random *rand.Rand)) {
	t.Helper()
	var all sync.WaitGroup
	for i, session := range c.sessions {
		for j, s := range c.instances {
			all.Go(func() { do(s, session, rand.New(rand.NewPCG(uint64(i), uint64(j)))) })
		}
	}
	redistest.WaitAtMost(t, time.Minute, &all)
}

// used is what all sessions have used.
func (c *crowdOfSessions) used(t *testing.T) (actions int64, value money.MicroUSD) {
	t.Helper()
	for _, session := range c.sessions {
		is := must(c.instances[0].Session(t.Context(), c.byKey(), session))(t)
		actions, value = actions+is.ActionCount, value+is.ValueUsed+is.ValueHeld
	}
	return actions, value
}

// daySpender uses a session in every way that counts in its agent's day. It takes from surely what it may give back before it sends that,
// and adds what it was given once that is acknowledged.
type daySpender struct {
	*crowdOfSessions
	t       *testing.T
	s       *Store
	session uuid.UUID
	token   AccessToken
	random  *rand.Rand
	surely  *atomic.Int64
	most    int64
}

func (p *daySpender) add(value money.MicroUSD) {
	if now := p.surely.Add(int64(value)); now > p.most {
		p.t.Errorf("%d are used and held at once, of %d a day", now, p.most)
	}
}

// allowed says whether an operation was done; it may be refused for the day alone.
func (p *daySpender) allowed(what string, err error) bool {
	if err != nil {
		wantAgentLimit(p.t, what, err, LimitValuePerDay)
	}
	return err == nil
}

func (p *daySpender) spend() {
	value := money.MicroUSD(1 + p.random.Int64N(9))
	switch p.random.IntN(4) {
	case 0:
		if _, err := p.s.Charge(p.t.Context(), p.byKey(), p.session, Charge{Count: 1, Value: value}); p.allowed("charge", err) {
			p.add(value)
		}
	case 1:
		other := p.sessions[p.random.IntN(sessionsOfCrowd)]
		outcomes, err := p.s.ChargeBatch(p.t.Context(), p.byKey(), []BatchCharge{
			{p.session, Charge{Count: 1, Value: value}}, {other, Charge{Count: 1, Value: value}}, {p.session, Charge{Count: 1, Value: value}}}, nil)
		if err != nil {
			p.t.Error(err)
		}
		for _, outcome := range outcomes {
			if p.allowed("batch", outcome.Err) {
				p.add(value)
			}
		}
	case 2:
		p.transact(value)
	default:
		p.lease(value)
	}
}

func (p *daySpender) transact(value money.MicroUSD) {
	begun, err := p.s.Begin(p.t.Context(), p.token, NewTransaction{Session: p.session, ActionType: "call", PreState: "{}", Value: value, Lifetime: time.Hour})
	if !p.allowed("begin", err) {
		return
	}
	p.add(value)
	cost := money.MicroUSD(p.random.Int64N(2 * int64(value)))
	p.add(-max(value-cost, 0))
	committed, err := p.s.Commit(p.t.Context(), p.token, begun.ID, Commit{Value: &cost})
	if err != nil || committed.Value+committed.Overage != cost {
		p.t.Errorf("a commit of %d: %+v, %v", cost, committed, err)
	}
	p.add(committed.Value - min(cost, value))
	if p.random.IntN(4) == 0 {
		p.add(-committed.Value)
		if _, err := p.s.Rollback(p.t.Context(), p.byKey(), begun.ID, Rollback{}); err != nil {
			p.t.Errorf("a rollback: %v", err)
		}
	}
}

func (p *daySpender) lease(value money.MicroUSD) {
	lease, err := p.s.GrantLease(p.t.Context(), p.byKey(), p.session, NewLease{MaxValue: value, Lifetime: time.Minute, Partial: p.random.IntN(2) == 0})
	if !p.allowed("lease", err) {
		return
	}
	p.add(lease.MaxValue)
	used := money.MicroUSD(p.random.Int64N(int64(lease.MaxValue) + 1))
	p.add(used - lease.MaxValue)
	if _, err := p.s.SettleLease(p.t.Context(), p.byKey(), lease.ID, NewSettlement{ValueUsed: used}); err != nil {
		p.t.Errorf("a settlement: %v", err)
	}
}

// awayFromMidnight waits until the day has a minute left, by the machine's clock.
func awayFromMidnight() {
	if left := time.Until(time.Now().UTC().Truncate(day).Add(day)); left < time.Minute {
		time.Sleep(left)
	}
}

func TestTheLimitPerDayHoldsOverSessionsThatTwoInstancesUseAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		const most, rounds = 2000, 10
		awayFromMidnight()
		c := newCrowd(t, s, perDay(most))
		token := c.exchange(t, s).AccessToken
		var surely atomic.Int64
		c.each(t, func(s *Store, session uuid.UUID, random *rand.Rand) {
			p := &daySpender{c, t, s, session, token, random, &surely, most}
			for range rounds {
				p.spend()
			}
		})
		if _, used := c.used(t); int64(used) != surely.Load() {
			t.Errorf("the sessions have used %d, and %d were acknowledged", used, surely.Load())
		}
		c.wantToday(t, s, "after all", money.MicroUSD(surely.Load()))
		c.each(t, func(s *Store, session uuid.UUID, _ *rand.Rand) { // what is left of the day, to the last micro-dollar
			for {
				_, err := s.Charge(t.Context(), c.byKey(), session, Charge{Count: 1, Value: 1})
				if err != nil {
					wantAgentLimit(t, "charge", err, LimitValuePerDay)
					return
				}
				surely.Add(1)
			}
		})
		if _, used := c.used(t); used != most || surely.Load() != most {
			t.Errorf("the sessions have used %d of %d a day, and %d were acknowledged", used, most, surely.Load())
		}
		c.wantToday(t, s, "at last", most)
	})
}

// The day turns while two instances charge all sessions. What was left of it is gone, and the next one has its value once.
func TestAtTheTurnOfADayTwoInstancesShareOneDaysValue(t *testing.T) {
	t.Parallel()
	for _, spentBefore := range []int64{0, 40, 120} {
		fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
			const most = 120
			clock(day - time.Millisecond)
			c := newCrowd(t, s, perDay(most))
			var charged, unanswered atomic.Int64
			var turned atomic.Bool
			go func() {
				for charged.Load() < spentBefore {
					time.Sleep(time.Millisecond)
				}
				clock(day)
				turned.Store(true)
			}()
			c.each(t, func(s *Store, session uuid.UUID, _ *rand.Rand) {
				for {
					was := turned.Load()
					_, err := s.Charge(t.Context(), c.byKey(), session, Charge{Count: 1, Value: 1})
					var refused *AgentLimitError
					switch {
					case err == nil:
						charged.Add(1)
					case isUnanswered(err):
						unanswered.Add(1)
					case !errors.As(err, &refused) || refused.Limit != LimitValuePerDay:
						t.Error(err)
						return
					case was:
						return
					}
				}
			})
			_, used := c.used(t)
			total := int64(used)
			if first := total - most; first < spentBefore || first > most || total < charged.Load() || total > charged.Load()+unanswered.Load() {
				t.Errorf("%d were charged over the turn and the sessions have used %d; each day has %d, and %d were charged before; %d were not answered",
					charged.Load(), total, most, spentBefore, unanswered.Load())
			}
			c.wantToday(t, s, "on the day after", most)
		})
	}
}

func TestTheLimitPerMinuteHoldsOverSessionsThatTwoInstancesChargeAtOnce(t *testing.T) {
	t.Parallel()
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		const most = 60
		c := newCrowd(t, s, AgentLimits{ActionsPerMinute: new(int64(most))})
		for i, want := range []int64{most, most + 1, most + 1 + 10} {
			clock([]time.Duration{0, time.Second, 11 * time.Second}[i])
			c.each(t, func(s *Store, session uuid.UUID, random *rand.Rand) {
				for range 2 {
					_, err := s.Charge(t.Context(), c.byKey(), session, Charge{Count: 1, Value: 1})
					if err != nil {
						wantAgentLimit(t, "charge", err, LimitActionsPerMinute)
					}
				}
			})
			if actions, _ := c.used(t); actions != want {
				t.Errorf("at step %d, %d actions were charged, want %d", i, actions, want)
			}
		}
	})
}

func TestTheLimitOfOpenSessionsHoldsThoughTwoInstancesCreateThemAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		const most = 7
		w := limitedTenant(t, s, AgentLimits{OpenSessions: new(int64(most))}, NewSession{})
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		instances := [2]*Store{s, anotherInstance(t, s)}
		for range 2 { // again when all have ended
			var all sync.WaitGroup
			var lock sync.Mutex
			var made []uuid.UUID
			for i := range 40 {
				all.Go(func() {
					created, err := instances[i%2].CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour})
					if err != nil {
						wantAgentLimit(t, "creation", err, LimitOpenSessions)
						return
					}
					lock.Lock()
					defer lock.Unlock()
					made = append(made, created.ID)
				})
			}
			redistest.WaitAtMost(t, time.Minute, &all)
			if got := *must(s.Agent(t.Context(), w.key, w.agent.ID))(t).Usage.OpenSessions; got != most || len(made) != most {
				t.Errorf("%d were created and %d are open, want %d", len(made), got, most)
			}
			for _, id := range made {
				must(s.EndSession(t.Context(), w.byKey(), id))(t)
			}
		}
	})
}
