package redisstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

func TestOneReportOfAnOrganizationIsMadeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, organization := newReports(), uuid.UUID{1}
		enter := func(organization uuid.UUID) (entered chan error, release func()) {
			entered = make(chan error, 1)
			var leave func()
			go func() {
				var err error
				leave, err = r.enter(t.Context(), organization)
				entered <- err
			}()
			synctest.Wait()
			return entered, func() { leave(); synctest.Wait() }
		}
		first, release := enter(organization)
		wantEntered(t, "the first", first, nil)
		other, _ := enter(uuid.UUID{2})
		wantEntered(t, "another organization's", other, nil)
		var waiting []chan error
		var releases []func()
		for range reportsWaiting {
			entered, leave := enter(organization)
			waiting, releases = append(waiting, entered), append(releases, leave)
		}
		beyond, _ := enter(organization)
		wantEntered(t, "one more", beyond, ErrManyReports)
		release()
		for i := range 3 {
			wantEntered(t, "the one that waited longest", waiting[i], nil)
			if len(waiting[i+1]) > 0 {
				t.Fatalf("%d reports are made at once", i+2)
			}
			if i < 2 {
				releases[i]()
			}
		}
		time.Sleep(reportWait)
		synctest.Wait()
		for _, entered := range waiting[3:] {
			wantEntered(t, "one that has waited for long", entered, ErrManyReports)
		}
		releases[2]()
		if len(r.queue) != 1 { // the other organization's
			t.Errorf("%d organizations are remembered", len(r.queue))
		}
	})
}

func wantEntered(t *testing.T, what string, entered <-chan error, want error) {
	t.Helper()
	select {
	case err := <-entered:
		wantError(t, what, err, want)
	default:
		t.Fatalf("%s waits", what)
	}
}

func TestAReportEndsWhenItTakesTooLong(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		w.chargeTyped(t, s, typed("a", 1, 2))
		s.reports.longest = time.Nanosecond
		_, err := s.UsageReport(t.Context(), w.key, everyDay())
		wantError(t, "a report that takes too long", err, ErrReportTooLong)
		s.reports.longest = MostReportTime
		w.wantReport(t, s, everyDay(), total(1, 2))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.UsageReport(gone, w.key, everyDay()); err == nil || err == ErrReportTooLong {
			t.Errorf("whoever asked has gone: %v", err)
		}
	})
}

// More sessions than one step reads of the index, of an agent and of all, with one that goes while the index is read.
func TestAReportContainsEverySessionThoughOthersGoMeanwhile(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		index, rdb := s.keys.agentSessions(w.agent.ID), peek(t, s)
		var ids []uuid.UUID
		for range 2*membersAtOnce + 5 {
			ids = append(ids, NewID(w.agent.ID))
		}
		filling := rdb.Pipeline()
		for _, id := range ids {
			filling.ZAdd(t.Context(), index, redis.Z{Member: string(ofCell(w.agent.ID).of(id))})
		}
		must(filling.Exec(t.Context()))(t)
		seen := map[uuid.UUID]bool{}
		err := s.eachKept(t.Context(), flow{}, w.agent.ID, func(ctx context.Context, sessions []place) error {
			for _, p := range sessions {
				seen[p.session] = true
			}
			return rdb.ZRem(ctx, index, string(ofCell(w.agent.ID).of(sessions[0].session))).Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range append(ids, w.session.ID) {
			if !seen[id] {
				t.Fatalf("%v of %d was not read; %d were", id, len(ids), len(seen))
			}
		}
	})
}
