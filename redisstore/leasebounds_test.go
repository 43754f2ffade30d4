package redisstore

import (
	"sync/atomic"
	"testing"
	"time"

	"remit/redisstore/internal/kernel"
)

// A renewal is another object, as a grant is. Beyond the rate it is refused, and the settlement stands.
func TestRenewalsCountInTheRates(t *testing.T) {
	t.Parallel()
	const perSecond = 2
	for limit, rates := range map[string]Rates{
		kernel.OrganizationRate: {Organization: perSecond},
		kernel.AgentRate:        {Agent: perSecond},
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 1000, MaxLease: time.Minute})
				caller := byToken(w.exchange(t, s))
				cfg := s.config
				cfg.Rates = rates
				limited := must(Open(cfg))(t)
				defer limited.Close()
				began := time.Now()
				var passed atomic.Int64
				limited.core.Usage.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
				must(limited.Organization(t.Context(), w.key))(t)
				one := NewLease{MaxActions: 1, Lifetime: time.Minute}
				l := must(limited.GrantLease(t.Context(), caller, w.session.ID, one))(t)
				renewed := NewSettlement{ActionCount: 1, Renew: &one}
				for n := range perSecond*kernel.BurstTime - 1 {
					next := must(limited.SettleLease(t.Context(), caller, l.ID, renewed))(t).Settlement.Renewed
					if next == nil {
						t.Fatalf("the %d. renewal of a burst is refused", n+1)
					}
					l = *next
				}
				refused := must(limited.SettleLease(t.Context(), caller, l.ID, renewed))(t).Settlement
				if refused.Renewed != nil || refused.Refusal != "rate_limited" || refused.ActionCount != 1 {
					t.Errorf("too many renewals: %+v", refused)
				}
				w.wantState(t, s, perSecond*kernel.BurstTime, 0, 0, 0)
				passed.Add(int64(time.Second / perSecond))
				must(limited.GrantLease(t.Context(), caller, w.session.ID, one))(t)
			})
		})
	}
}

// A session may be gone when its due leases are ended: then nothing is written, because it would never expire.
func TestTheLeasesOfASessionThatIsGoneLeaveNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, leasing)
		w.letLeasePass(t, s, w.lease(t, s, 1, 10))
		w.lease(t, s, 1, 10)
		session := s.keys.Session(w.agent.ID, w.session.ID)
		must(peek(t, s).Del(t.Context(), session).Result())(t)
		act := kernel.Actor{Organization: w.key.Organization, Agent: w.agent.ID}
		keys := []string{session, s.keys.Holds(w.agent.ID, w.session.ID), s.keys.Events(w.agent.ID), s.core.AgentKey(act),
			s.keys.Leases(w.agent.ID, w.session.ID), s.keys.AgentHolds(w.agent.ID)}
		must(s.client.Run(t.Context(), kernel.OwnFlow, releaseHolds, keys, s.core.Audit(t.Context(), act)))(t)
		if n := must(peek(t, s).Exists(t.Context(), session).Result())(t); n != 0 {
			t.Error("the session is there again")
		}
	})
}
