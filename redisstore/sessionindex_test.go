package redisstore

import (
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
	t.Parallel()
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

func TestAnIndexEntryWrittenBeforeItsSessionIsNotListedAndStays(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		c := s.sessionCreation(t.Context(), w.key, NewSession{Agent: w.agent.ID})
		wantError(t, "the entry", s.enter(t.Context(), c, ""), nil)
		for _, status := range []Status{"", Active, Completed} {
			ids, _ := listed(t, s, w.byKey(), Query{Limit: 1, Status: status}, nil)
			if slices.Contains(ids, c.id) {
				t.Errorf("listed by status %q: %v", status, ids)
			}
			wantIndexed(t, s, s.keys.OrganizationOpen(w.key.Organization), w.session.ID, c.id)
		}
	})
}

func TestPagesHoldEverySessionOnceWhileSessionsMove(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		const sessions = 9
		for limit := 1; limit < sessions; limit++ {
			for name, next := range map[string]func(*[]uuid.UUID) uuid.UUID{
				"the newest first": func(left *[]uuid.UUID) uuid.UUID {
					last := len(*left) - 1
					id := (*left)[last]
					*left = (*left)[:last]
					return id
				},
				"the oldest first": func(left *[]uuid.UUID) uuid.UUID {
					id := (*left)[0]
					*left = (*left)[1:]
					return id
				},
			} {
				w := newTenant(t, s, NewSession{MaxActions: 1})
				all := []uuid.UUID{w.session.ID}
				for range sessions - 1 {
					all = append(all, w.newSession(t, s, time.Hour).ID)
				}
				left := slices.Clone(all)
				slices.Reverse(all)
				ids, _ := listed(t, s, w.byKey(), Query{Limit: limit}, func() {
					must(s.EndSession(t.Context(), w.byKey(), next(&left)))(t)
				})
				if !slices.Equal(ids, all) {
					t.Errorf("%d to a page, %s: %v, want %v", limit, name, ids, all)
				}
			}
		}
	})
}

func TestPagesOfActiveSessionsHoldThemOnceWhileOthersEnd(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		all := []uuid.UUID{w.session.ID}
		for range 39 {
			all = append([]uuid.UUID{w.newSession(t, s, time.Hour).ID}, all...)
		}
		var ending sync.WaitGroup
		for part := range 4 {
			ending.Go(func() {
				for i := part; i < len(all); i += 4 {
					if _, err := s.EndSession(t.Context(), w.byKey(), all[i]); err != nil {
						t.Error(err)
					}
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

func TestEndingASessionMovesItToTheClosedOnes(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		grant := w.exchange(t, s)
		second := w.newSession(t, s, time.Hour)
		o := w.key.Organization
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		wantIndexed(t, s, s.keys.OrganizationOpen(o), second.ID)
		wantIndexed(t, s, s.keys.OrganizationClosed(o), w.session.ID)
		must(s.EndSession(t.Context(), byToken(grant), second.ID))(t)
		wantIndexed(t, s, s.keys.OrganizationOpen(o))
		wantIndexed(t, s, s.keys.OrganizationClosed(o), w.session.ID, second.ID)
	})
}

func TestAFailedMoveIsRepeatedByTheNextReader(t *testing.T) {
	t.Parallel()
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
				if !slices.Equal(ids, []uuid.UUID{other.ID, w.session.ID}) {
					t.Errorf("listed are %v", ids)
				}
			})
		}
	})
}

func TestALostReplyToAMoveLeavesNothingInDoubt(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		loadScripts(t, s)
		for name, move := range map[string]func(w tenant) error{
			"the end": func(w tenant) error {
				_, err := s.EndSession(t.Context(), w.byKey(), w.session.ID)
				return err
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
			p.LoseReplies(closeSessions.SHA(), 100)
			wantError(t, name, move(w), nil)
			if n := p.Requests(); n != 1 {
				t.Errorf("%s: it was sent %d times", name, n)
			}
			p.LoseReplies("", 0)
			wantIndexed(t, s, s.keys.OrganizationOpen(w.key.Organization))
			wantIndexed(t, s, s.keys.OrganizationClosed(w.key.Organization), w.session.ID)
		}
	})
}

func TestMovingSessionsAgainChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
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
	t.Parallel()
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

func TestOpenAndClosedIDsAreMergedNewestFirstAndEachOnce(t *testing.T) {
	t.Parallel()
	id := func(n byte) uuid.UUID { return uuid.UUID{n} }
	ids := func(of ...byte) []uuid.UUID {
		all := []uuid.UUID{}
		for _, n := range of {
			all = append(all, id(n))
		}
		return all
	}
	for _, test := range []struct {
		name         string
		open, closed []uuid.UUID
		limit        int
		want         []uuid.UUID
	}{
		{"nothing", nil, nil, 3, ids()},
		{"open alone", ids(3, 2, 1), nil, 3, ids(3, 2, 1)},
		{"closed alone", nil, ids(3, 2, 1), 3, ids(3, 2, 1)},
		{"in turn", ids(5, 3, 1), ids(4, 2), 9, ids(5, 4, 3, 2, 1)},
		{"open all newer", ids(250, 200), ids(2, 1), 9, ids(250, 200, 2, 1)},
		{"closed all newer", ids(2, 1), ids(250, 200), 9, ids(250, 200, 2, 1)},
		{"the same", ids(2, 1), ids(2, 1), 9, ids(2, 1)},
		{"some the same", ids(5, 4, 2), ids(4, 3, 2, 1), 9, ids(5, 4, 3, 2, 1)},
		{"no more than asked for", ids(5, 3, 1), ids(4, 2), 2, ids(5, 4)},
		{"one that is in both is one of those asked for", ids(5, 4, 3), ids(5, 4, 2), 3, ids(5, 4, 3)},
	} {
		if got := newestOf(test.open, test.closed, test.limit); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
