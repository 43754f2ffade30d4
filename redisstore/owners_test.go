package redisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisproc"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// What a store remembers of a cell is a guess: the agent may be another of that cell, another organization's, or gone.
func TestAListShowsTheRightAgentsWhateverWasRemembered(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		foreign := newTenant(t, s, NewSession{MaxActions: 1})
		want := []SessionSummary{summaryOf(w.newSession(t, s, time.Hour)), summaryOf(w.session)}
		o := w.key.Organization
		for name, remembered := range map[string]uuid.UUID{
			"nothing": uuid.Nil, "itself": w.agent.ID, "another of its cell": NewID(w.agent.ID), "another organization's": foreign.agent.ID,
		} {
			s.core.Owners.Met.Purge()
			if remembered != uuid.Nil {
				s.core.Owners.Met.Add(kernel.OwnersCell{Organization: o, Cell: kernel.CellOf(w.agent.ID)}, remembered)
			}
			for range 2 {
				wantEqual(t, name, must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10}))(t).Items, want)
			}
			wantEqual(t, name+": what it remembers then", s.core.Owners.Likely(o, []uuid.UUID{w.session.ID}), []uuid.UUID{w.agent.ID})
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		for _, v := range must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10}))(t).Items {
			wantEqual(t, "the status of a revoked agent", v.Status, Revoked)
		}
	})
}

// Even a wrong guess costs one read more, and only once.
func TestAListReadsItsAgentsOnce(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{UsageEvery: time.Hour}, server.URL(), nil) // no other script runs
	info := redistest.PlainClient(t, server.URL())
	w := newTenant(t, s, NewSession{MaxActions: 1})
	loadScripts(t, s)
	s.core.Owners.Note(w.key.Organization, []uuid.UUID{NewID(w.agent.ID)})
	for _, hmget := range []int{1 + 1 + 2, 1 + 1 + 1} { // of the organization, the session and agents
		before := redistest.CommandCounts(t, info)
		must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 1}))(t)
		want := map[string]int{"evalsha": 1, "time": 1, "zrevrangebylex": 2, "hmget": hmget}
		wantEqual(t, "the commands", redistest.CommandsRun(t, info, before), want)
	}
}
