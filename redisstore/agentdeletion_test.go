package redisstore

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"remit/redisstore/internal/kernel"
)

// endRecord brings the end of a deleted agent's record about at once.
func (w tenant) endRecord(t *testing.T, s *Store) {
	t.Helper()
	for _, key := range []string{s.keys.Agent(w.agent.ID), s.keys.Events(w.agent.ID)} {
		mustDo(t, peek(t, s).Del(t.Context(), key).Err())
	}
}

func TestADeletedAgentIsRevokedAndEndsWhenItsRetentionIsOver(t *testing.T) {
	onEachRedis(t, Config{Retention: 48 * time.Hour}, func(t *testing.T, s *Store) {
		active, revoked := newTenant(t, s, NewSession{MaxActions: 9}), newTenant(t, s, NewSession{MaxActions: 9})
		before := must(s.RevokeAgent(t.Context(), revoked.key, revoked.agent.ID))(t)
		wantEqual(t, "the deletion of a revoked one", must(s.DeleteAgent(t.Context(), revoked.key, revoked.agent.ID))(t), before)
		for name, w := range map[string]tenant{"active": active, "revoked": revoked} {
			first := must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
			wantEqual(t, name+", deleted again", must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t), first)
			wantEqual(t, name+", revoked", must(s.Agent(t.Context(), w.key, w.agent.ID))(t).Revoked, first)
			trail := must(peek(t, s).PTTL(t.Context(), s.keys.Events(w.agent.ID)).Result())(t)
			record := must(peek(t, s).PTTL(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t)
			if record <= 47*time.Hour || record > 48*time.Hour || trail < record {
				t.Errorf("%s: the record ends in %s, the audit trail in %s", name, record, trail)
			}
			events := w.eventsOf(t, s, w.agent.ID)
			wantEqual(t, name+": the last event", events[len(events)-1].Type, "agent.revoked")
		}
	})
}

// An access token lives by the clock of an instance: the record must not end before it, however short the retention is.
func TestADeletedAgentsRecordOutlivesItsAccessTokens(t *testing.T) {
	onTenant(t, Config{Retention: time.Second}, func(t *testing.T, s *Store, w tenant) {
		must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
		if left := must(peek(t, s).PTTL(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t); left < s.config.AccessLifetime+clockLeeway-time.Minute {
			t.Errorf("its record ends in %s", left)
		}
	})
}

// What an agent leaves behind ends by itself, however long its record is kept. Until the record ends, its organization may
// settle its leases.
func TestEverythingOfADeletedAgentEnds(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
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

func TestNothingBringsADeletedAgentBack(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		of, grant, used, expired := w.furnished(t, s), w.exchange(t, s), w.exchange(t, s), w.lease(t, s, 1, 1)
		brief := w.beginning(1)
		brief.Lifetime = 300 * time.Millisecond
		must(s.Begin(t.Context(), grant.AccessToken, brief))(t)
		must(s.RotateRefresh(t.Context(), w.agent.ID, used.Family, 1, GrantRequest{}))(t)
		eventually(t, "a hold is due", func() bool {
			now := must(peek(t, s).Time(t.Context()).Result())(t).UnixMilli()
			return must(peek(t, s).ZCount(t.Context(), s.keys.Holds(w.agent.ID, w.session.ID), "-inf", strconv.FormatInt(now, 10)).Result())(t) == 1
		})
		w.letLeasePass(t, s, expired)
		w.endRecord(t, s)
		wantEqual(t, "how many agents are listed", len(must(s.Agents(t.Context(), w.key, Query{Limit: 10}))(t).Items), 0)
		wantEqual(t, "how many sessions are listed", len(must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10}))(t).Items), 0)
		wantUnchanged(t, s, "by a key", func() {
			ofAnAgent := []error{ErrUnknownAgent, ErrUnknownSession, ErrUnknownTransaction, ErrUnknownLease}
			for _, operation := range askedByKey(w.key) {
				want := answersOfNothing[operation.name]
				if slices.Contains(ofAnAgent, want) && operation.name != "UsageReport of one agent" { // what it used is reported
					wantError(t, operation.name, operation.ask(s, t, of), want)
				}
			}
		})
		wantUnchanged(t, s, "by a token", func() {
			for _, operation := range slices.Concat(askedByEither(byToken(grant)), askedByAgent(grant.AccessToken)) {
				wantError(t, operation.name, operation.ask(s, t, of), ErrInvalidToken)
			}
		})
		wantUnchanged(t, s, "by other credentials", func() {
			wantError(t, "exchange", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{})), ErrInvalidCredentials)
			wantError(t, "secret", errOf(s.CheckSecret(t.Context(), w.agent.ID, w.secret)), ErrInvalidCredentials)
			w.wantNoRefresh(t, s, grant.Family, 1)
			w.wantNoRefresh(t, s, used.Family, 2)
		})
		wantUnchanged(t, s, "holds and leases that are due", func() {
			keys := []string{s.keys.Session(w.agent.ID, w.session.ID), s.keys.Holds(w.agent.ID, w.session.ID), s.keys.Events(w.agent.ID),
				s.keys.Agent(w.agent.ID), s.keys.Leases(w.agent.ID, w.session.ID), s.keys.AgentHolds(w.agent.ID)}
			must(s.client.Run(t.Context(), kernel.OwnFlow, releaseHolds, keys, s.core.AuditAs(t.Context(), kernel.ActorKey)))(t)
		})
	})
}
