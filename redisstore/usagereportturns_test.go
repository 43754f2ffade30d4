package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
)

func TestAReportEndsWhenItTakesTooLong(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		w.chargeTyped(t, s, typed("a", 1, 2))
		s.LongestReport = time.Nanosecond
		wantError(t, "a report that takes too long", errOf(s.UsageReport(t.Context(), w.key, everyDay())), records.ErrReportTooLong)
		s.LongestReport = records.MostReportTime
		w.wantReport(t, s, everyDay(), total(1, 2))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.UsageReport(gone, w.key, everyDay()); err == nil || err == records.ErrReportTooLong {
			t.Errorf("the caller has gone: %v", err)
		}
	})
}

// More sessions than one step reads of the index, of an agent and of all, with one that goes while the index is read.
func TestAReportContainsEverySessionThoughOthersGoMeanwhile(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		index, rdb := s.keys.AgentSessions(w.agent.ID), peek(t, s)
		var ids []uuid.UUID
		for range 2*kernel.MembersAtOnce + 5 {
			ids = append(ids, NewID(w.agent.ID))
		}
		filling := rdb.Pipeline()
		for _, id := range ids {
			filling.ZAdd(t.Context(), index, redis.Z{Member: string(kernel.OfCell(w.agent.ID).Of(id))})
		}
		must(filling.Exec(t.Context()))(t)
		seen := map[uuid.UUID]bool{}
		err := s.core.EachSession(t.Context(), flow{}, w.agent.ID, func(sessions []uuid.UUID) error {
			for _, id := range sessions {
				seen[id] = true
			}
			return rdb.ZRem(t.Context(), index, string(kernel.OfCell(w.agent.ID).Of(sessions[0]))).Err()
		})
		mustDo(t, err)
		for _, id := range append(ids, w.session.ID) {
			if !seen[id] {
				t.Fatalf("%v of %d was not read; %d were", id, len(ids), len(seen))
			}
		}
	})
}
