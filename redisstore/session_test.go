package redisstore

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

func TestARefusedSessionLeavesNothingBehind(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
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
			wantError(t, "EndSession", errOf(s.EndSession(t.Context(), caller, w.session.ID)), ErrUnknownSession)
			wantError(t, "Charge", errOf(s.Charge(t.Context(), caller, w.session.ID, Charge{Count: 1})), ErrUnknownSession)
		}
	})
}

func TestEndingASessionAgainReturnsTheFirstResponse(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
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

// A token that is not live learns nothing, not even which sessions are not its own.
func TestARevokedTokenIsRefusedForOtherSessionsToo(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
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
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		revoked := w.exchange(t, s)
		must(0, s.RevokeFamily(t.Context(), revoked.AccessToken, revoked.Family))(t)
		_, err := s.Sessions(t.Context(), byToken(revoked), Query{Limit: 1, Agent: NewRootID()})
		wantError(t, "Sessions of another agent", err, ErrInvalidToken)
	})
}

// A session's id has the time of the service that drew it, which may differ from Redis's.
func TestASessionsCreationTimeIsRedissNotItsIDs(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
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
