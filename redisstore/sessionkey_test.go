package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/event"
	"remit/redisstore/internal/kernel"
)

// sessionKey creates a key of the tenant's session, as the token that scripts take it for.
func (w tenant) sessionKey(t *testing.T, s *Store) AccessToken {
	t.Helper()
	made := must(s.CreateSessionKey(t.Context(), w.key, w.session.ID, NewSessionKey{}))(t)
	return AccessToken{Organization: w.key.Organization, Agent: w.agent.ID, Family: made.ID, Session: w.session.ID}
}

func TestWhatEndsASessionKeyEndsItAtEveryOperation(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, _ tenant) {
		for name, end := range map[string]func(ctx context.Context, w tenant, id uuid.UUID) error{
			"its deletion": func(ctx context.Context, w tenant, id uuid.UUID) error {
				return s.DeleteSessionKey(ctx, w.key, w.session.ID, id)
			},
			"a revocation of all tokens": func(ctx context.Context, w tenant, _ uuid.UUID) error {
				return revokeFamilies(ctx, s, w.key, w.agent.ID)
			},
			"dpop_required": func(ctx context.Context, w tenant, _ uuid.UUID) error {
				return errOf(s.ChangeAgent(ctx, w.key, w.agent.ID, AgentChanges{DPoPRequired: new(true)}))
			},
			"the loss of its creation": func(ctx context.Context, w tenant, id uuid.UUID) error {
				return peek(t, s).HDel(ctx, s.keys.Session(w.agent.ID, w.session.ID), kernel.SessionKeyField(id)).Err()
			},
			"the agent's revocation": func(ctx context.Context, w tenant, _ uuid.UUID) error {
				return errOf(s.RevokeAgent(ctx, w.key, w.agent.ID))
			},
		} {
			w := newTenant(t, s, roomy)
			of, key := w.furnished(t, s), w.sessionKey(t, s)
			once := func() error {
				return errors.Join(chargeTwice(t.Context(), s, Caller{Token: &key}, of.session, &Idempotency{Key: "batch"}),
					errOf(s.Charge(t.Context(), Caller{Token: &key}, of.session, Charge{Count: 1, Idempotency: &Idempotency{Key: "charge"}})))
			}
			wantError(t, "charges before", once(), nil)
			wantError(t, "charges repeated", once(), nil)
			mustDo(t, end(t.Context(), w, key.Family))
			check := w.unchangedOf(t, s, of)
			for _, operation := range askedByEither(Caller{Token: &key}) {
				wantError(t, operation.name+" after "+name, operation.ask(s, t, of), ErrInvalidToken)
			}
			for _, err := range once().(interface{ Unwrap() []error }).Unwrap() {
				wantError(t, "charges repeated after "+name, err, ErrInvalidToken)
			}
			wantError(t, "RequestMore after "+name, errOf(s.RequestMore(t.Context(), key, of.session, NewSessionRequest{AddActions: 1})), ErrInvalidToken)
			check()
		}
	})
}

// What is of another session of the same agent looks unknown, and a key that is dead is refused as that.
func TestASessionKeySettlesNothingOfAnotherSession(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		key, other := w.sessionKey(t, s), w.another(t, s, roomy)
		of := other.furnished(t, s)
		for _, live := range []bool{true, false} {
			unknown, lease := ErrUnknownTransaction, ErrUnknownLease
			if !live {
				unknown, lease = ErrInvalidToken, ErrInvalidToken
				mustDo(t, s.DeleteSessionKey(t.Context(), w.key, w.session.ID, key.Family))
			}
			unchanged := other.unchangedOf(t, s, of)
			for name, do := range map[string]func(id uuid.UUID) error{
				"Transaction": func(id uuid.UUID) error { return errOf(s.Transaction(t.Context(), Caller{Token: &key}, id)) },
				"Commit":      func(id uuid.UUID) error { return errOf(s.Commit(t.Context(), key, id, Commit{})) },
				"Rollback":    func(id uuid.UUID) error { return errOf(s.Rollback(t.Context(), Caller{Token: &key}, id, Rollback{})) },
				"ChangeHold": func(id uuid.UUID) error {
					return errOf(s.ChangeHold(t.Context(), key, id, NewHold{Lifetime: new(time.Hour)}))
				},
			} {
				wantError(t, name, do(of.transaction), unknown)
				wantError(t, name+" of none", do(NewID(w.agent.ID)), unknown)
			}
			wantError(t, "Charge", chargeTwice(t.Context(), s, Caller{Token: &key}, of.session, nil), ErrInvalidToken) // the server says 404
			wantError(t, "Lease", errOf(s.Lease(t.Context(), Caller{Token: &key}, of.lease)), lease)
			wantError(t, "SettleLease", errOf(s.SettleLease(t.Context(), Caller{Token: &key}, of.lease, NewSettlement{})), lease)
			unchanged()
		}
	})
}

func TestASessionHasFewKeys(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		create := func(name string) (SessionKey, error) {
			return s.CreateSessionKey(t.Context(), w.key, w.session.ID, NewSessionKey{Name: name})
		}
		fields := func() int64 {
			return must(peek(t, s).HLen(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
		}
		before := fields()
		var made []SessionKey
		for i := range 8 {
			made = append([]SessionKey{must(create(fmt.Sprint("a name\n", i)))(t)}, made...)
		}
		wantEqual(t, "the list", must(s.SessionKeys(t.Context(), w.key, w.session.ID))(t), made)
		wantError(t, "the ninth", errOf(create("")), ErrManySessionKeys)
		mustDo(t, s.DeleteSessionKey(t.Context(), w.key, w.session.ID, made[3].ID))
		wantError(t, "its deletion again", s.DeleteSessionKey(t.Context(), w.key, w.session.ID, made[3].ID), ErrUnknownSessionKey)
		must(create(""))(t)

		for _, id := range []uuid.UUID{made[3].ID, made[4].ID} {
			wantError(t, "EndFamily", s.EndFamily(t.Context(), w.key, w.agent.ID, id), ErrUnknownFamily)
		}

		// Those of before a revocation of all tokens are no keys of the session any more. What it deletes leaves nothing.
		mustDo(t, revokeFamilies(t.Context(), s, w.key, w.agent.ID))
		wantEqual(t, "after revoke_families", must(s.SessionKeys(t.Context(), w.key, w.session.ID))(t), []SessionKey{})
		for range 9 {
			mustDo(t, s.DeleteSessionKey(t.Context(), w.key, w.session.ID, must(create(""))(t).ID))
		}
		wantEqual(t, "the fields of the session", fields(), before+1) // which live: none
		must(create(""))(t)
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		wantEqual(t, "of a revoked agent", must(s.SessionKeys(t.Context(), w.key, w.session.ID))(t), []SessionKey{})
	})
}

func TestOnlyAnActiveSessionOfAnAgentWithoutProofsGetsAKey(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{DPoPRequired: new(true)}))(t)
		wantError(t, "dpop_required", errOf(s.CreateSessionKey(t.Context(), w.key, w.session.ID, NewSessionKey{})), ErrUnboundSessionKey)
		w.end(t, s, w.session.ID)
		wantError(t, "in an ended session", errOf(s.CreateSessionKey(t.Context(), w.key, w.session.ID, NewSessionKey{})), &NotActiveError{Completed})
	})
}

func TestTheTrailNamesTheSessionKey(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		key, next := w.sessionKey(t, s), w.follow(s)
		next(t)
		w.begin(t, s, key, 1)
		mustDo(t, s.DeleteSessionKey(t.Context(), w.key, w.session.ID, key.Family))
		events := next(t)
		if len(events) != 2 || events[0].Actor != (event.Actor{Type: event.BySessionKey, ID: key.Family}) ||
			events[1].Type != "session.key_deleted" || events[1].SessionKey != key.Family {
			t.Errorf("%+v", events)
		}
	})
}
