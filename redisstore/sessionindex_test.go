package redisstore

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// place puts a session's entry into the organization's index of open sessions, of closed ones, both or neither.
func (w tenant) place(t *testing.T, s *Store, session uuid.UUID, open, closed bool) {
	t.Helper()
	for index, in := range map[string]bool{
		s.keys.OrganizationOpen(w.key.Organization): open, s.keys.OrganizationClosed(w.key.Organization): closed,
	} {
		if in {
			addEntries(t, s, index, session)
		} else {
			removeEntries(t, s, index, session)
		}
	}
}

func TestASessionIsListedOnceAtEveryStageOfItsLife(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		end := func(w tenant) { must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t) }
		revoke := func(w tenant) { must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t) }
		for _, stage := range []struct {
			name         string
			reach        func(w tenant)
			open, closed bool
			want         Status
		}{
			{"created", func(tenant) {}, true, false, Active},
			{"ended, before it is moved", end, true, false, Completed},
			{"ended, and moved", end, false, true, Completed},
			{"ended, and being moved", end, true, true, Completed},
			{"revoked", revoke, true, false, Revoked},
			{"revoked, and moved", revoke, false, true, Revoked},
		} {
			w := newTenant(t, s, NewSession{MaxActions: 1})
			older := w.session
			w.session = w.newSession(t, s, time.Hour)
			stage.reach(w)
			newer := must(s.CreateSession(t.Context(), w.key, NewSession{
				Agent: newAgents(t, s, w.key, 1)[0].ID, MaxActions: 1, Lifetime: time.Hour}))(t)
			for _, status := range []Status{"", Active, Completed, Revoked} {
				var want []uuid.UUID
				for _, session := range []uuid.UUID{newer.ID, w.session.ID, older.ID} {
					is := must(s.Session(t.Context(), w.byKey(), session))(t).Status
					if session == w.session.ID && is != stage.want {
						t.Fatalf("%s: it is %s", stage.name, is)
					}
					if status == "" || is == status {
						want = append(want, session)
					}
				}
				for limit := 1; limit <= len(want)+1; limit++ {
					w.place(t, s, w.session.ID, stage.open, stage.closed)
					ids, _ := listed(t, s, w.byKey(), Query{Limit: limit, Status: status}, nil)
					if !slices.Equal(ids, want) {
						t.Errorf("%s, listed by status %q, %d to a page: %v, want %v", stage.name, status, limit, ids, want)
					}
				}
			}
		}
	})
}

func TestPagesHoldEverySessionOnceWhileSessionsMove(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		const sessions = 9
		for limit := 1; limit < sessions; limit++ {
			for _, newestFirst := range []bool{true, false} {
				w := newTenant(t, s, NewSession{MaxActions: 1})
				all := []uuid.UUID{w.session.ID}
				for range sessions - 1 {
					all = append(all, w.newSession(t, s, time.Hour).ID)
				}
				left := slices.Clone(all)
				slices.Reverse(all)
				if newestFirst {
					left = slices.Clone(all)
				}
				ids, _ := listed(t, s, w.byKey(), Query{Limit: limit}, func() {
					must(s.EndSession(t.Context(), w.byKey(), left[0]))(t)
					left = left[1:]
				})
				wantEqual(t, fmt.Sprintf("%d to a page, the newest ended first: %t", limit, newestFirst), ids, all)
			}
		}
	})
}

func TestPagesOfActiveSessionsHoldThemOnceWhileOthersEnd(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		stay, ends := []uuid.UUID{w.session.ID}, []uuid.UUID{}
		for range 6 {
			ends = append(ends, w.newSession(t, s, time.Hour).ID)
			stay = append([]uuid.UUID{w.newSession(t, s, time.Hour).ID}, stay...)
		}
		ids, _ := listed(t, s, w.byKey(), Query{Limit: 2, Status: Active}, func() {
			if len(ends) > 0 {
				must(s.EndSession(t.Context(), w.byKey(), ends[0]))(t)
				ends = ends[1:]
			}
		})
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return -slices.Compare(a[:], b[:]) })
		if !slices.Equal(slices.Compact(slices.Clone(ids)), ids) {
			t.Errorf("one is shown twice: %v", ids)
		}
		for _, id := range stay {
			if !slices.Contains(ids, id) {
				t.Errorf("%s is missing among %v", id, ids)
			}
		}
	})
}

func TestEveryListIsWholeWhileManyEndSessions(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		all := []uuid.UUID{w.session.ID}
		for range 39 {
			all = append([]uuid.UUID{w.newSession(t, s, time.Hour).ID}, all...)
		}
		var ending sync.WaitGroup
		for part := range 4 {
			ending.Go(func() {
				for i := part; i < len(all); i += 4 {
					wantError(t, "EndSession", errOf(s.EndSession(t.Context(), w.byKey(), all[i])), nil)
				}
			})
		}
		ended := make(chan struct{})
		go func() {
			ending.Wait()
			close(ended)
		}()
		for done := false; !done; {
			select {
			case <-ended:
				done = true // and listed once more
			default:
			}
			if ids, _ := listed(t, s, w.byKey(), Query{Limit: 7}, nil); !slices.Equal(ids, all) {
				t.Errorf("%v, want %v", ids, all)
			}
			listed(t, s, w.byKey(), Query{Limit: 7, Status: Active}, nil) // which moves some too
		}
		slices.Reverse(all)
		wantIndexed(t, s, s.keys.OrganizationOpen(w.key.Organization))
		wantIndexed(t, s, s.keys.OrganizationClosed(w.key.Organization), all...)
	})
}

func TestAFailedMoveIsRepeatedByTheNextReader(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for name, meet := range map[string]func(w tenant){
			"the end, asked for again":    func(w tenant) { must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t) },
			"a list of active sessions":   func(w tenant) { listed(t, s, w.byKey(), Query{Limit: 1, Status: Active}, nil) },
			"pruning after creating some": func(w tenant) { s.pruneIndexes(t.Context(), w.key.Organization, w.agent.ID) },
		} {
			t.Run(name, func(t *testing.T) {
				w := newTenant(t, s, NewSession{MaxActions: 1})
				other := w.newSession(t, s, time.Hour)
				open, closed := s.keys.OrganizationOpen(w.key.Organization), s.keys.OrganizationClosed(w.key.Organization)
				must(peek(t, s).Set(t.Context(), closed, "no index", 0).Result())(t)
				must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
				must(peek(t, s).Del(t.Context(), closed).Result())(t)
				wantIndexed(t, s, open, w.session.ID, other.ID)

				meet(w)
				wantIndexed(t, s, open, other.ID)
				wantIndexed(t, s, closed, w.session.ID)
				ids, _ := listed(t, s, w.byKey(), Query{Limit: 1}, nil)
				wantEqual(t, "what is listed", ids, []uuid.UUID{other.ID, w.session.ID})
			})
		}
	})
}

func TestTheFirstReadOfAnExpiryMovesTheSession(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		read := func() {
			wantEqual(t, "the status", must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Status, Expired)
		}
		open, closed := s.keys.OrganizationOpen(w.key.Organization), s.keys.OrganizationClosed(w.key.Organization)
		w.letSessionPass(t, s)
		read()
		wantIndexed(t, s, open)
		wantIndexed(t, s, closed, w.session.ID)
		w.place(t, s, w.session.ID, true, false)
		read()
		wantIndexed(t, s, open, w.session.ID) // a later read does not move it

		w.place(t, s, w.session.ID, false, true)
		w.session = w.newSession(t, s, time.Hour)
		child := w.child(t, s, w.session.ID, 1, 1)
		w.letSessionPass(t, s)
		read()
		wantIndexed(t, s, open, w.session.ID, child.ID) // a tree is moved once it is settled

		revoked := newTenant(t, s, roomy) // no read notes the expiry of a revoked agent's session
		revoked.letSessionPass(t, s)
		must(s.RevokeAgent(t.Context(), revoked.key, revoked.agent.ID))(t)
		revoked.place(t, s, revoked.session.ID, true, false)
		wantEqual(t, "the status", must(s.Session(t.Context(), revoked.byKey(), revoked.session.ID))(t).Status, Expired)
		wantIndexed(t, s, s.keys.OrganizationOpen(revoked.key.Organization), revoked.session.ID)
	})
}

func TestALostReplyToAMoveLeavesNothingInDoubt(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		loadScripts(t, s)
		for name, move := range map[string]func(w tenant) error{
			"the end": func(w tenant) error {
				return errOf(s.EndSession(t.Context(), w.byKey(), w.session.ID))
			},
			"a list": func(w tenant) error {
				must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
				page, err := s.Sessions(t.Context(), w.byKey(), Query{Limit: 1, Status: Active})
				if len(page.Items) != 0 || page.Next != uuid.Nil {
					t.Errorf("%+v", page)
				}
				return err
			},
		} {
			w := newTenant(t, s, NewSession{MaxActions: 1})
			sent := wantLost(t, name, p, closeSessions.SHA(), func() error { return move(w) }, nil)
			wantEqual(t, name+": how often it was sent", sent, 1)
			wantIndexed(t, s, s.keys.OrganizationOpen(w.key.Organization))
			wantIndexed(t, s, s.keys.OrganizationClosed(w.key.Organization), w.session.ID)
		}
	})
}

func TestMovingSessionsAgainChangesNothing(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		over := make([]uuid.UUID, 500) // more than a page
		for i := range over {
			over[i] = NewID(w.agent.ID)
		}
		o := w.key.Organization
		addEntries(t, s, s.keys.OrganizationOpen(o), over...)
		s.closeSessions(t.Context(), o, over, time.Time{})
		wantIndexed(t, s, s.keys.OrganizationOpen(o), w.session.ID)
		wantIndexed(t, s, s.keys.OrganizationClosed(o), over...)
		wantUnchanged(t, s, "moved again", func() {
			s.closeSessions(t.Context(), o, over, time.Time{})
			s.closeSessions(t.Context(), o, over[17:18], time.Time{})
		})
	})
}

func TestAnEntryThatIsGoneIsDroppedFromOpenAndClosedSessions(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for name, meet := range map[string]func(w tenant){
			"a list of all":    func(w tenant) { listed(t, s, w.byKey(), Query{Limit: 1}, nil) },
			"a list of active": func(w tenant) { listed(t, s, w.byKey(), Query{Limit: 1, Status: Active}, nil) },
			"pruning":          func(w tenant) { s.pruneIndexes(t.Context(), w.key.Organization, w.agent.ID) },
		} {
			t.Run(name, func(t *testing.T) {
				w := newTenant(t, s, NewSession{MaxActions: 1})
				w.place(t, s, idOfAge(kernel.CellOf(w.agent.ID), 2*kernel.CreationTime), true, true)
				meet(w)
				wantIndexed(t, s, s.keys.OrganizationOpen(w.key.Organization), w.session.ID)
				wantIndexed(t, s, s.keys.OrganizationClosed(w.key.Organization))
			})
		}
	})
}
