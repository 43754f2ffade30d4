package redisstore

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

func TestASessionIsReadAsItWasCreated(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		token := byToken(w.exchange(t, s))
		for _, n := range []NewSession{
			{MaxActions: 1, MaxValue: 0, Lifetime: time.Minute},
			{MaxActions: 1_000_000_000, MaxValue: money.Max, Lifetime: 30 * 24 * time.Hour},
			{MaxActions: 7, MaxValue: 12_345_678, Lifetime: time.Hour, Scopes: []string{"write"}, Metadata: `{"task":"größe"}`},
		} {
			n.Agent = w.agent.ID
			before := time.Now().Add(-time.Millisecond)
			session := must(s.CreateSession(t.Context(), w.key, n))(t)
			if session.Created.Before(before) || session.Created.After(time.Now()) {
				t.Errorf("created at %s", session.Created)
			}
			if kernel.CellOf(session.ID) != kernel.CellOf(w.agent.ID) {
				t.Errorf("session %s of agent %s", session.ID, w.agent.ID)
			}
			want := Session{
				ID: session.ID, Agent: w.agent.ID, Status: Active, Scopes: n.Scopes, Metadata: n.Metadata,
				Created: session.Created,
				Usage:   Usage{MaxActions: n.MaxActions, MaxValue: n.MaxValue, Expires: session.Created.Add(n.Lifetime)},
			}
			if n.Scopes == nil {
				want.Scopes = w.agent.Scopes
			}
			if !reflect.DeepEqual(session, want) {
				t.Errorf("created %+v, want %+v", session, want)
			}
			for _, caller := range []Caller{w.byKey(), token} {
				if read := must(s.Session(t.Context(), caller, session.ID))(t); !reflect.DeepEqual(read, want) {
					t.Errorf("read %+v, want %+v", read, want)
				}
			}
		}
	})
}

func TestASessionHoldsTheScopesItAsksForOrAllOfItsAgentsWhenItNamesNone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1}) // its agent has read and write
		for _, test := range []struct{ asked, want []string }{
			{nil, []string{"read", "write"}},
			{[]string{}, []string{}},
			{[]string{"read"}, []string{"read"}},
			{[]string{"write", "read"}, []string{"write", "read"}},
		} {
			created := must(s.CreateSession(t.Context(), w.key,
				NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour, Scopes: test.asked}))(t)
			read := must(s.Session(t.Context(), w.byKey(), created.ID))(t)
			if !slices.Equal(created.Scopes, test.want) || !slices.Equal(read.Scopes, test.want) {
				t.Errorf("asked for %q: created with %q, read with %q", test.asked, created.Scopes, read.Scopes)
			}
		}
	})
}

func TestARefusedSessionLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		foreign := newTenant(t, s, NewSession{MaxActions: 1})
		revoked := must(s.CreateAgent(t.Context(), w.key, Agent{Name: "old", Scopes: []string{"read"}}, [32]byte{2}, nil))(t)
		must(s.RevokeAgent(t.Context(), w.key, revoked.ID))(t)
		unknown := NewRootID()
		before, foreignBefore := w.contents(t, s), foreign.contents(t, s)
		for _, test := range []struct {
			name   string
			agent  uuid.UUID
			scopes []string
			want   error
		}{
			{"a scope not held", w.agent.ID, []string{"admin"}, &ScopeError{Scope: "admin"}},
			{"one of two scopes not held", w.agent.ID, []string{"read", "admin", "root"}, &ScopeError{Scope: "admin"}},
			{"half of a scope", w.agent.ID, []string{"rea"}, &ScopeError{Scope: "rea"}},
			{"more than a scope", w.agent.ID, []string{"read:all"}, &ScopeError{Scope: "read:all"}},
			{"a scope that is a pattern", w.agent.ID, []string{"rea."}, &ScopeError{Scope: "rea."}},
			{"an unknown agent", unknown, nil, ErrUnknownAgent},
			{"an unknown agent in the cell of a known one", NewID(w.agent.ID), nil, ErrUnknownAgent},
			{"another organization's agent", foreign.agent.ID, nil, ErrUnknownAgent},
			{"another organization's agent, with a scope it has not", foreign.agent.ID, []string{"admin"}, ErrUnknownAgent},
			{"a revoked agent", revoked.ID, nil, ErrAgentRevoked},
			{"a revoked agent, with a scope it has not", revoked.ID, []string{"write"}, ErrAgentRevoked},
		} {
			session, err := s.CreateSession(t.Context(), w.key,
				NewSession{Agent: test.agent, MaxActions: 1, Lifetime: time.Hour, Scopes: test.scopes})
			wantError(t, test.name, err, test.want)
			if !reflect.DeepEqual(session, Session{}) {
				t.Errorf("%s: %+v", test.name, session)
			}
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
		if after := foreign.contents(t, s); !reflect.DeepEqual(after, foreignBefore) {
			t.Errorf("%q became %q", foreignBefore, after)
		}
		if n := must(peek(t, s).Exists(t.Context(), s.keys.AgentSessions(unknown)).Result())(t); n != 0 {
			t.Error("the unknown agent has an index")
		}
	})
}

func TestASessionIsIndexedForItsOrganizationAndItsAgent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		second := w.newSession(t, s, time.Hour)
		o := w.key.Organization
		for _, index := range []string{s.keys.OrganizationOpen(o), s.keys.AgentSessions(w.agent.ID)} {
			wantIndexed(t, s, index, w.session.ID, second.ID)
		}
		wantIndexed(t, s, s.keys.OrganizationClosed(o))
	})
}

func TestSessionsStayForTheirLifetimeAndTheRetention(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: 2 * time.Hour}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1, Lifetime: 3 * time.Hour})
		index := s.keys.AgentSessions(w.agent.ID)
		wantTTL(t, s, s.keys.Session(w.agent.ID, w.session.ID), 5*time.Hour)
		wantTTL(t, s, index, 5*time.Hour)

		short := w.newSession(t, s, time.Hour)
		wantTTL(t, s, s.keys.Session(w.agent.ID, short.ID), 3*time.Hour)
		wantTTL(t, s, index, 5*time.Hour) // of the longest-lived

		long := w.newSession(t, s, 8*time.Hour)
		wantTTL(t, s, s.keys.Session(w.agent.ID, long.ID), 10*time.Hour)
		wantTTL(t, s, index, 10*time.Hour)

		must(s.Charge(t.Context(), w.byKey(), long.ID, Charge{Count: 1}))(t)
		wantTTL(t, s, s.keys.Session(w.agent.ID, long.ID), 10*time.Hour)
		must(s.EndSession(t.Context(), w.byKey(), long.ID))(t)
		wantTTL(t, s, s.keys.Session(w.agent.ID, long.ID), 2*time.Hour)
		wantTTL(t, s, index, 10*time.Hour)
	})
}

func TestASessionIsGoneAfterTheRetention(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{Retention: 20 * time.Millisecond}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		eventually(t, "the session is gone", func() bool {
			_, err := s.Session(t.Context(), w.byKey(), w.session.ID)
			return err == ErrUnknownSession
		})
		token := byToken(w.exchange(t, s))
		for _, caller := range []Caller{w.byKey(), token} {
			_, err := s.EndSession(t.Context(), caller, w.session.ID)
			wantError(t, "EndSession", err, ErrUnknownSession)
			_, err = s.Charge(t.Context(), caller, w.session.ID, Charge{Count: 1})
			wantError(t, "Charge", err, ErrUnknownSession)
		}
	})
}

func TestAnUnknownSessionIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for _, caller := range []Caller{w.byKey(), byToken(w.exchange(t, s))} {
			for _, id := range []uuid.UUID{NewID(w.agent.ID), otherCell(w.agent.ID), w.agent.ID, uuid.Nil} {
				_, err := s.Session(t.Context(), caller, id)
				wantError(t, "Session", err, ErrUnknownSession)
				_, err = s.EndSession(t.Context(), caller, id)
				wantError(t, "EndSession", err, ErrUnknownSession)
			}
		}
	})
}

func TestASessionHasTheStatusOfWhatCameFirst(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		life   time.Duration
		events []Status
		want   Status
	}{
		{"nothing has happened", time.Hour, nil, Active},
		{"ended", time.Hour, []Status{Completed}, Completed},
		{"its time is up", 30 * time.Millisecond, []Status{Expired}, Expired},
		{"its agent was revoked", time.Hour, []Status{Revoked}, Revoked},
		{"ended, then revoked", time.Hour, []Status{Completed, Revoked}, Completed},
		{"expired, then revoked", 30 * time.Millisecond, []Status{Expired, Revoked}, Expired},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 1, Lifetime: test.life})
				var ended time.Time
				for _, event := range test.events {
					switch event {
					case Completed:
						ended = must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
					case Revoked:
						must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
					case Expired:
						w.waitUntil(t, s, Expired)
					}
				}
				session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
				if session.Status != test.want || session.Ended != ended {
					t.Errorf("%s, ended at %s, want %s and %s", session.Status, session.Ended, test.want, ended)
				}
				listed := must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 1}))(t)
				if len(listed.Items) != 1 || listed.Items[0] != summaryOf(session) {
					t.Errorf("listed %+v, read %+v", listed.Items, session)
				}
			})
		})
	}
}

func TestEndingASessionAgainReturnsTheFirstResponse(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		grant := w.exchange(t, s)
		before := time.Now().Add(-time.Millisecond)
		first := must(s.EndSession(t.Context(), byToken(grant), w.session.ID))(t)
		if first.Before(before) || first.After(time.Now()) {
			t.Errorf("ended at %s", first)
		}
		eventually(t, "a later millisecond", func() bool { return time.Now().After(first.Add(2 * time.Millisecond)) })
		for _, caller := range []Caller{w.byKey(), byToken(grant)} {
			if again := must(s.EndSession(t.Context(), caller, w.session.ID))(t); again != first {
				t.Errorf("again at %s, first at %s", again, first)
			}
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		if again := must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t); again != first {
			t.Errorf("after the revocation at %s, first at %s", again, first)
		}
	})
}

func TestEndingASessionThatIsOverIsRefusedWithItsStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Expired, Revoked} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newSessionThatIs(t, s, status)
				before := w.contents(t, s)
				_, err := s.EndSession(t.Context(), w.byKey(), w.session.ID)
				wantError(t, "EndSession", err, &NotActiveError{status})
				if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
					t.Errorf("%q became %q", before, after)
				}
			})
		})
	}
}

// A token that is not live learns nothing, not even which sessions are not its own.
func TestARevokedTokenIsRefusedForOtherSessionsToo(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for name, id := range map[string]uuid.UUID{"the same cell": NewID(w.agent.ID), "another cell": otherCell(w.agent.ID)} {
			revoked := putAgent(t, s, w.key, id)
			if err := s.RevokeFamily(t.Context(), revoked.AccessToken, revoked.Family); err != nil {
				t.Fatal(err)
			}
			for _, session := range []uuid.UUID{w.session.ID, NewRootID()} {
				for _, operation := range askedByEither(byToken(revoked)) {
					err := operation.ask(s, t, targetIn(revoked.Agent, session))
					wantError(t, operation.name+" from "+name, err, ErrInvalidToken)
				}
			}
		}
	})
}

func TestARevokedTokenIsRefusedForOtherAgentsToo(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		revoked := w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), revoked.AccessToken, revoked.Family); err != nil {
			t.Fatal(err)
		}
		_, err := s.Sessions(t.Context(), byToken(revoked), Query{Limit: 1, Agent: NewRootID()})
		wantError(t, "Sessions of another agent", err, ErrInvalidToken)
	})
}

// A session's id has the time of the service that drew it, which may differ from Redis's.
func TestASessionsCreationTimeIsRedissNotItsIDs(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		grant := w.exchange(t, s)
		for _, drawn := range []time.Duration{-48 * time.Hour, -time.Second, 0, time.Millisecond, 30 * 24 * time.Hour} {
			id := idOfAge(kernel.CellOf(w.agent.ID), drawn)
			created := must(s.writeSession(t.Context(), &creation{key: w.key, id: id, entered: true},
				NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour}))(t)
			if difference := time.Since(created.Created).Abs(); difference > time.Minute {
				t.Errorf("drawn %s ago: created %s from now", drawn, difference)
			}
			read := must(s.Session(t.Context(), byToken(grant), id))(t)
			page := must(s.Sessions(t.Context(), byToken(grant), Query{Limit: 200}))(t)
			i := slices.IndexFunc(page.Items, func(v SessionSummary) bool { return v.ID == id })
			if !reflect.DeepEqual(read, created) || page.Items[i] != summaryOf(created) {
				t.Errorf("drawn %s ago: read %+v, listed %+v, created %+v", drawn, read, page.Items[i], created)
			}
		}
	})
}
