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
		defer w.unchanged(t, s)()
		defer foreign.unchanged(t, s, s.keys.AgentSessions(unknown))()
		for _, test := range []struct {
			name   string
			agent  uuid.UUID
			scopes []string
			want   error
		}{
			{"a scope not held", w.agent.ID, []string{"admin"}, &ScopeError{Scope: "admin"}},
			{"one of two scopes not held", w.agent.ID, []string{"read", "admin", "root"}, &ScopeError{Scope: "admin"}},
			{"an unknown agent", unknown, nil, ErrUnknownAgent},
			{"another organization's agent, with a scope it has not", foreign.agent.ID, []string{"admin"}, ErrUnknownAgent},
			{"a revoked agent", revoked.ID, nil, ErrAgentRevoked},
			{"a revoked agent, with a scope it has not", revoked.ID, []string{"write"}, ErrAgentRevoked},
		} {
			session, err := s.CreateSession(t.Context(), w.key,
				NewSession{Agent: test.agent, MaxActions: 1, Lifetime: time.Hour, Scopes: test.scopes})
			wantError(t, test.name, err, test.want)
			wantEqual(t, test.name, session, Session{})
		}
	})
}

func TestASessionIsKeptForTheRetention(t *testing.T) {
	onTenant(t, Config{Retention: 48 * time.Hour}, func(t *testing.T, s *Store, w tenant) {
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		wantTTL(t, s, s.keys.Session(w.agent.ID, w.session.ID), 48*time.Hour)
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
			wantEqual(t, "again", must(s.EndSession(t.Context(), caller, w.session.ID))(t), first)
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		wantEqual(t, "after the revocation", must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t), first)
	})
}

// A token that is not live learns nothing, not even which sessions and agents are not its own.
func TestARevokedTokenIsRefusedForOtherSessionsAndAgentsToo(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		for name, id := range map[string]uuid.UUID{"the same cell": NewID(w.agent.ID), "another cell": otherCell(w.agent.ID)} {
			revoked := putAgent(t, s, w.key, id)
			mustDo(t, s.RevokeFamily(t.Context(), revoked.AccessToken, revoked.Family))
			wantError(t, "Sessions of another agent", errOf(s.Sessions(t.Context(), byToken(revoked), Query{Limit: 1, Agent: NewRootID()})), ErrInvalidToken)
			for _, session := range []uuid.UUID{w.session.ID, NewRootID()} {
				for _, operation := range askedByEither(byToken(revoked)) {
					err := operation.ask(s, t, targetIn(revoked.Agent, session))
					wantError(t, operation.name+" from "+name, err, ErrInvalidToken)
				}
			}
		}
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

func TestARepeatedChangeOfLimitsDoesNotReopenASession(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		change := NewLimits{Lifetime: new(time.Hour), Idempotency: &Idempotency{Key: "longer"}}
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, change))(t)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, change))(t)
		wantEqual(t, "whether it is replayed", change.Idempotency.Outcome.Replayed, true)
		wantGone(t, s, s.keys.OrganizationOpen(w.key.Organization))
	})
}
