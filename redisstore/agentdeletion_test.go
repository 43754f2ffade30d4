package redisstore

import (
	"context"
	"strconv"
	"testing"
	"time"

	"remit/money"
	"remit/redisstore/internal/kernel"
)

// endRecord brings the end of a deleted agent's record about at once.
func (w tenant) endRecord(t *testing.T, s *Store) {
	t.Helper()
	for _, key := range []string{s.keys.Agent(w.agent.ID), s.keys.Events(w.agent.ID)} {
		if err := peek(t, s).Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADeletedAgentIsRevokedAndEndsWhenItsRetentionIsOver(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: 48 * time.Hour}, func(t *testing.T, s *Store) {
		active, revoked := newTenant(t, s, NewSession{MaxActions: 9}), newTenant(t, s, NewSession{MaxActions: 9})
		before := must(s.RevokeAgent(t.Context(), revoked.key, revoked.agent.ID))(t)
		if at := must(s.DeleteAgent(t.Context(), revoked.key, revoked.agent.ID))(t); !at.Equal(before) {
			t.Errorf("revoked at %s, deleted it says %s", before, at)
		}
		for name, w := range map[string]tenant{"active": active, "revoked": revoked} {
			first := must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
			if again := must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t); !again.Equal(first) {
				t.Errorf("%s: deleted at %s, then at %s", name, first, again)
			}
			if agent := must(s.Agent(t.Context(), w.key, w.agent.ID))(t); !agent.Revoked.Equal(first) {
				t.Errorf("%s: it reads as revoked at %s, not %s", name, agent.Revoked, first)
			}
			trail := must(peek(t, s).PTTL(t.Context(), s.keys.Events(w.agent.ID)).Result())(t)
			record := must(peek(t, s).PTTL(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t)
			if record <= 47*time.Hour || record > 48*time.Hour || trail < record {
				t.Errorf("%s: the record ends in %s, the audit trail in %s", name, record, trail)
			}
			events, _, err := s.Events(t.Context(), w.byKey(), w.agent.ID, "", 100)
			if last := events[len(events)-1]; err != nil || last.Type != "agent.revoked" {
				t.Errorf("%s: the last event is %+v, %v", name, last, err)
			}
		}
		stranger := newTenant(t, s, NewSession{MaxActions: 9})
		_, err := s.DeleteAgent(t.Context(), stranger.key, active.agent.ID)
		wantError(t, "another organization's agent", err, ErrUnknownAgent)
	})
}

// An access token lives by the clock of an instance: the record must not end before it, however short the retention is.
func TestADeletedAgentsRecordOutlivesItsAccessTokens(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: time.Second}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
		if left := must(peek(t, s).PTTL(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t); left < s.config.AccessLifetime+clockLeeway-time.Minute {
			t.Errorf("its record ends in %s", left)
		}
	})
}

// What an agent leaves behind ends by itself, however long its record is kept. Until the record ends, its organization may
// settle its leases.
func TestEverythingOfADeletedAgentEnds(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, leasing)
		grant := w.exchange(t, s)
		open, renewing, settled := w.lease(t, s, 1, 10), w.lease(t, s, 1, 10), w.lease(t, s, 1, 10)
		w.settle(t, s, settled.ID, 1, 1)
		pending := w.begin(t, s, grant.AccessToken, 1)
		w.ask(t, s, grant.AccessToken, 1, 1)
		must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
		n := NewSettlement{ActionCount: 1, ValueUsed: 2, Renew: &NewLease{MaxActions: 1, Lifetime: time.Minute}}
		late := must(s.SettleLease(t.Context(), w.byKey(), renewing.ID, n))(t)
		if late.Settlement.Renewed != nil || late.Settlement.Refusal != "session_not_active" {
			t.Errorf("its lease is settled with %+v", late.Settlement)
		}
		agent, session, keys := w.agent.ID, w.session.ID, s.keys
		for _, key := range []string{
			keys.Agent(agent), keys.Events(agent), keys.AgentFamilies(agent), keys.AgentSessions(agent), keys.AgentTransactions(agent),
			keys.Session(agent, session), keys.Holds(agent, session), keys.Leases(agent, session), keys.SessionTransactions(agent, session),
			keys.Transaction(agent, pending.ID), keys.Lease(agent, open.ID), keys.Lease(agent, renewing.ID), keys.Lease(agent, settled.ID),
			keys.SessionRequests(agent, session),
		} {
			if left := must(peek(t, s).PTTL(t.Context(), key).Result())(t); left <= 0 {
				t.Errorf("%q ends in %s", key, left)
			}
		}
	})
}

// POST …/revoke alone keeps the agent.
func TestARevokedAgentStays(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		if left := must(peek(t, s).PTTL(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t); left != -1 {
			t.Errorf("it ends in %s", left)
		}
	})
}

func TestNothingBringsADeletedAgentBack(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD, MaxLease: time.Minute})
		grant, used := w.exchange(t, s), w.exchange(t, s)
		open, expired := w.lease(t, s, 1, 1), w.lease(t, s, 1, 1)
		must(s.Begin(t.Context(), grant.AccessToken,
			NewTransaction{Session: w.session.ID, ActionType: "x", PreState: "{}", Value: 1, Lifetime: 300 * time.Millisecond}))(t)
		held := must(s.Begin(t.Context(), grant.AccessToken,
			NewTransaction{Session: w.session.ID, ActionType: "x", PreState: "{}", Value: 1, Lifetime: time.Hour}))(t)
		must(s.RotateRefresh(t.Context(), w.agent.ID, used.Family, 1, GrantRequest{}))(t)
		eventually(t, "a hold is due", func() bool {
			now := must(peek(t, s).Time(t.Context()).Result())(t).UnixMilli()
			return must(peek(t, s).ZCount(t.Context(), s.keys.Holds(w.agent.ID, w.session.ID), "-inf", strconv.FormatInt(now, 10)).Result())(t) == 1
		})
		w.letLeasePass(t, s, expired)
		w.endRecord(t, s)
		caller, n := byToken(grant), NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour}
		for name, test := range map[string]struct {
			do   func(context.Context) error
			want error
		}{
			"charge": {func(ctx context.Context) error {
				_, err := s.Charge(ctx, caller, w.session.ID, Charge{Count: 1})
				return err
			}, ErrInvalidToken},
			"charge by key": {func(ctx context.Context) error {
				_, err := s.Charge(ctx, w.byKey(), w.session.ID, Charge{Count: 1})
				return err
			}, ErrUnknownSession},
			"charge once": {func(ctx context.Context) error {
				_, err := s.Charge(ctx, caller, w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: "k"}})
				return err
			}, ErrInvalidToken},
			"check": {func(ctx context.Context) error { return s.CheckToken(ctx, grant.AccessToken) }, ErrInvalidToken},
			"exchange": {func(ctx context.Context) error {
				_, err := s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{})
				return err
			}, ErrInvalidCredentials},
			"secret": {func(ctx context.Context) error { _, err := s.CheckSecret(ctx, w.agent.ID, w.secret); return err }, ErrInvalidCredentials},
			"refresh": {func(ctx context.Context) error {
				_, err := s.RotateRefresh(ctx, w.agent.ID, grant.Family, 1, GrantRequest{})
				return err
			}, ErrInvalidRefreshToken},
			"reuse": {func(ctx context.Context) error {
				_, err := s.RotateRefresh(ctx, w.agent.ID, used.Family, 1, GrantRequest{})
				return err
			}, ErrInvalidRefreshToken},
			"family":  {func(ctx context.Context) error { return s.RevokeFamily(ctx, grant.AccessToken, grant.Family) }, ErrInvalidToken},
			"session": {func(ctx context.Context) error { _, err := s.CreateSession(ctx, w.key, n); return err }, ErrUnknownAgent},
			"read":    {func(ctx context.Context) error { _, err := s.Session(ctx, w.byKey(), w.session.ID); return err }, ErrUnknownSession},
			"end":     {func(ctx context.Context) error { _, err := s.EndSession(ctx, w.byKey(), w.session.ID); return err }, ErrUnknownSession},
			"commit": {func(ctx context.Context) error {
				_, err := s.Commit(ctx, grant.AccessToken, held.ID, Commit{})
				return err
			}, ErrInvalidToken},
			"rollback": {func(ctx context.Context) error { _, err := s.Rollback(ctx, w.byKey(), held.ID, Rollback{}); return err }, ErrUnknownTransaction},
			"begin": {func(ctx context.Context) error {
				_, err := s.Begin(ctx, grant.AccessToken, NewTransaction{ActionType: "x", PreState: "{}", Lifetime: time.Hour})
				return err
			}, ErrInvalidToken},
			"new secret": {func(ctx context.Context) error {
				_, err := s.RotateAgentSecret(ctx, w.key, w.agent.ID, SecretRotation{Hash: [32]byte{3}, Grace: time.Hour}, nil)
				return err
			}, ErrUnknownAgent},
			"revoke": {func(ctx context.Context) error { _, err := s.RevokeAgent(ctx, w.key, w.agent.ID); return err }, ErrUnknownAgent},
			"delete": {func(ctx context.Context) error { _, err := s.DeleteAgent(ctx, w.key, w.agent.ID); return err }, ErrUnknownAgent},
			"events": {func(ctx context.Context) error {
				_, _, err := s.Events(ctx, w.byKey(), w.agent.ID, "", 1)
				return err
			}, ErrUnknownAgent},
			"lease": {func(ctx context.Context) error {
				_, err := s.GrantLease(ctx, caller, w.session.ID, NewLease{MaxActions: 1, Lifetime: time.Second})
				return err
			}, ErrInvalidToken},
			"lease by key": {func(ctx context.Context) error {
				_, err := s.GrantLease(ctx, w.byKey(), w.session.ID, NewLease{MaxActions: 1, Lifetime: time.Second})
				return err
			}, ErrUnknownSession},
			"settle": {func(ctx context.Context) error {
				_, err := s.SettleLease(ctx, caller, open.ID, NewSettlement{})
				return err
			}, ErrInvalidToken},
			"settle by key": {func(ctx context.Context) error {
				_, err := s.SettleLease(ctx, w.byKey(), expired.ID, NewSettlement{Renew: &NewLease{MaxActions: 1, Lifetime: time.Second}})
				return err
			}, ErrUnknownLease},
			"read lease": {func(ctx context.Context) error { _, err := s.Lease(ctx, w.byKey(), open.ID); return err }, ErrUnknownLease},
			"holds and leases that are due": {func(ctx context.Context) error {
				keys := []string{s.keys.Session(w.agent.ID, w.session.ID), s.keys.Holds(w.agent.ID, w.session.ID), s.keys.Events(w.agent.ID),
					s.keys.Agent(w.agent.ID), s.keys.Leases(w.agent.ID, w.session.ID), s.keys.AgentHolds(w.agent.ID)}
				_, err := s.client.Run(ctx, kernel.OwnFlow, releaseHolds, keys, s.core.AuditAs(ctx, kernel.ActorKey))
				return err
			}, nil},
		} {
			wantUnchanged(t, s, name, func() { wantError(t, name, test.do(t.Context()), test.want) })
		}
	})
}

func TestADeletedAgentLeavesItsOrganizationsLists(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		w.endRecord(t, s)
		if page := must(s.Agents(t.Context(), w.key, Query{Limit: 10}))(t); len(page.Items) != 0 {
			t.Errorf("agents: %+v", page.Items)
		}
		if page := must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10}))(t); len(page.Items) != 0 {
			t.Errorf("sessions: %+v", page.Items)
		}
	})
}
