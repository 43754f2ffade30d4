package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// SessionKey is what an organization can see of a key of one of its sessions. The key itself is derived from the ids, and stored
// nowhere.
type SessionKey struct {
	ID      uuid.UUID
	Session uuid.UUID
	Agent   uuid.UUID
	Name    string // "" for none
	Created time.Time
}

// NewSessionKey is a session key to create.
type NewSessionKey struct {
	Name        string       // "" for none
	Idempotency *Idempotency // nil for no idempotency key
}

var (
	createSessionKey = kernel.NewKeyedScript("budgets/create_session_key")
	listSessionKeys  = kernel.NewScript("budgets/list_session_keys", reads)
	deleteSessionKey = kernel.NewScript("budgets/delete_session_key", writes)
)

// CreateSessionKey creates a key of an active session. A session has at most 8. Errors: ErrInvalidAPIKey, *RoleError, ErrUnknownSession,
// *NotActiveError, ErrUnboundSessionKey, ErrManySessionKeys, *QuotaError, *RateError; with an idempotency key ErrIdempotencyKeyReused.
func (s *Store) CreateSessionKey(ctx context.Context, key APIKey, session uuid.UUID, n NewSessionKey) (_ SessionKey, err error) {
	c := Caller{Key: &key}
	defer func() { s.core.FreeClaim(ctx, c, n.Idempotency, err) }()
	n.Idempotency.SetBounded()
	act, err := s.core.ActOnSession(ctx, c, session, n.Idempotency)
	if err != nil {
		return SessionKey{}, err
	}
	held, err := s.core.ReserveFor(ctx, act, kernel.Demand{
		Organization: act.Organization, Resource: kernel.NoResource, Events: kernel.EventSize,
		Bytes: kernel.SessionKeySize + int64(len(n.Name)), Retained: s.config.Retention,
	}, n.Idempotency)
	if err != nil {
		return SessionKey{}, err
	}
	keys := s.sessionKeys(act, session)
	r, err := s.core.Perform(ctx, createSessionKey, act, n.Idempotency, keys[:], act.Organization, act.Agent,
		kernel.NewSessionKeyID(act.Agent), n.Name, s.core.Audit(ctx, act))
	if err == nil {
		held.Resize(held.Demand.Bytes, time.Duration(r.Number(2))*time.Millisecond)
	}
	held.Finish(err, n.Idempotency.IsReplay())
	if err != nil {
		return SessionKey{}, act.ErrorFor(err)
	}
	return SessionKey{ID: r.ID(0), Session: session, Agent: act.Agent, Name: n.Name, Created: r.Time(1)}, r.Err
}

// SessionKeys returns the keys of a session, newest first. Errors: ErrInvalidAPIKey, *RoleError, ErrUnknownSession.
func (s *Store) SessionKeys(ctx context.Context, key APIKey, session uuid.UUID) ([]SessionKey, error) {
	act, err := s.core.ActOnSession(ctx, Caller{Key: &key}, session, nil)
	if err != nil {
		return nil, err
	}
	keys := s.sessionKeys(act, session)
	r, err := s.client.Run(ctx, act.Flow, listSessionKeys, keys[:2], act.Organization, act.Agent)
	if err != nil {
		return nil, act.ErrorFor(err)
	}
	listed := r.List(0)
	all := make([]SessionKey, len(listed.Values)/2)
	for i := range all {
		created, name, _ := strings.Cut(listed.Text(2*i+1), " ")
		all[i] = SessionKey{ID: listed.ID(2 * i), Session: session, Agent: act.Agent, Name: name, Created: listed.ParseTime(created)}
	}
	slices.Reverse(all)
	return all, cmp.Or(r.Err, listed.Err)
}

// DeleteSessionKey ends a session key at once. Errors: ErrInvalidAPIKey, *RoleError, ErrUnknownSession, ErrUnknownSessionKey.
func (s *Store) DeleteSessionKey(ctx context.Context, key APIKey, session, id uuid.UUID) error {
	act, err := s.core.ActOnSession(ctx, Caller{Key: &key}.Urgently(), session, nil)
	if err != nil {
		return err
	}
	keys := s.sessionKeys(act, session)
	_, err = s.client.Run(ctx, act.Flow, deleteSessionKey, keys[:], act.Organization, act.Agent, id, s.core.Audit(ctx, act))
	if err != nil {
		return act.ErrorFor(err)
	}
	s.core.Usage.NoteEvent(act.Organization)
	return nil
}

// OutOfReach returns why a session key is not live, or the refusal of what it does not reach: a dead key is refused as that. Errors:
// ErrInvalidToken, or the refusal.
func (s *Store) OutOfReach(ctx context.Context, t AccessToken, refusal error) error {
	return cmp.Or(s.core.CheckLive(ctx, t), refusal)
}

// heldTo refuses a session key what is not its session's. Any other caller may go on: the operation's script says what it may do.
func (s *Store) heldTo(ctx context.Context, t *AccessToken, session uuid.UUID, unknown error) error {
	if !t.IsSessionKey() || session == t.Session {
		return nil
	}
	return s.OutOfReach(ctx, *t, unknown)
}
