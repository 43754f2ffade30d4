package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// withClock runs the test on a Redis whose clock it sets.
func withClock(t *testing.T, test func(t *testing.T, s *Store, step func(ahead time.Duration))) {
	t.Helper()
	mini, start := miniredis.RunT(t), time.Now()
	step := func(ahead time.Duration) { mini.SetTime(start.Add(ahead)) }
	step(0)
	test(t, openStore(t, Config{}, "redis://"+mini.Addr(), nil), step)
}

// What an instance has indexed and not yet created is met by readers, whose Redis is hours ahead of it.
func TestNothingVanishesFromListsThoughRedissClockIsAhead(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{3 * time.Hour, -3 * time.Hour, 400 * 24 * time.Hour} {
		withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
			w := newTenant(t, s, NewSession{MaxActions: 1})
			grant := w.exchange(t, s)
			step(ahead)
			read := func() {
				listed(t, s, w.byKey(), Query{Limit: 10}, nil)
				listed(t, s, w.byKey(), Query{Limit: 10, Status: Active}, nil)
				must(s.Agents(t.Context(), w.key, Query{Limit: 10}))(t)
				w.listedTransactions(t, s, w.byKey(), Query{Limit: 10})
				s.pruneIndexes(t.Context(), w.key.Organization, w.agent.ID)
			}
			o, session, agent, transaction := w.key.Organization, NewID(w.agent.ID), NewRootID(), NewID(w.agent.ID)
			addEntries(t, s, s.keys.OrganizationOpen(o), session)
			addEntries(t, s, s.keys.OrganizationAgents(o), agent)
			addEntries(t, s, s.keys.OrganizationTransactions(o), transaction)
			for range 3 {
				read()
			}
			must(s.writeSession(t.Context(), &creation{key: w.key, id: session, entered: true}, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour}))(t)
			must(s.writeAgent(t.Context(), kernel.Actor{Organization: o, Agent: agent}, Agent{ID: agent, Name: "late"}, [32]byte{1}, &creation{entered: true}))(t)
			must(s.begin(t.Context(), grant.AccessToken, transaction, w.alone(0)))(t)
			for range 3 {
				read()
			}
			sessions, _ := listed(t, s, w.byKey(), Query{Limit: 10, Status: Active}, nil)
			agents := must(s.Agents(t.Context(), w.key, Query{Limit: 10}))(t).Items
			if !slices.Contains(sessions, session) || len(agents) != 2 || len(w.listedTransactions(t, s, w.byKey(), Query{Limit: 10})) != 1 {
				t.Errorf("with the clock %v ahead: sessions %v, agents %v", ahead, sessions, agents)
			}
		})
	}
}

func TestASessionThatIsActiveAgainWhenTheClockGoesBackIsListedAsActive(t *testing.T) {
	t.Parallel()
	for name, close := range map[string]func(t *testing.T, s *Store, w tenant){
		"a list":  func(t *testing.T, s *Store, w tenant) { listed(t, s, w.byKey(), Query{Limit: 10, Status: Active}, nil) },
		"pruning": func(t *testing.T, s *Store, w tenant) { s.pruneIndexes(t.Context(), w.key.Organization, w.agent.ID) },
	} {
		withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
			w := newTenant(t, s, NewSession{MaxActions: 1, Lifetime: 30 * time.Minute})
			long, ended := w.newSession(t, s, time.Hour), w.newSession(t, s, time.Hour)
			must(s.EndSession(t.Context(), w.byKey(), ended.ID))(t)
			active := func(want ...uuid.UUID) {
				t.Helper()
				for _, limit := range []int{1, 10} {
					ids, _ := listed(t, s, w.byKey(), Query{Limit: limit, Status: Active}, nil)
					wantEqual(t, name, ids, want)
				}
				ids, _ := listed(t, s, w.byKey(), Query{Limit: 10}, nil)
				wantEqual(t, name+": how many there are", len(ids), 3)
			}
			step(2 * time.Hour)
			close(t, s, w)
			wantIndexed(t, s, s.keys.OrganizationOpen(w.key.Organization))
			active()
			step(0)
			active(long.ID, w.session.ID)
			must(s.ChangeLimits(t.Context(), w.key, long.ID, NewLimits{Lifetime: new(5 * time.Hour)}))(t)
			step(45 * time.Minute)
			active(long.ID)
			step(4 * time.Hour) // past all expiries that were seen before
			active(long.ID)
			step(6 * time.Hour)
			active()
		})
	}
}
