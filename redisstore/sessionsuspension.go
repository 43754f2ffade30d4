package redisstore

import (
	"context"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

var (
	suspendSession = kernel.NewScript("budgets/suspend_session", writes)
	resumeSession  = kernel.NewScript("budgets/resume_session", writes)
)

// SuspendSession suspends an active session of the key's organization, and returns it. Until ResumeSession nothing new may
// be done in it or in its descendants; what has begun may settle. One that is suspended keeps its first time and reason ("" for none). Errors:
// ErrInvalidAPIKey, ErrUnknownSession, *NotActiveError.
func (s *Store) SuspendSession(ctx context.Context, key APIKey, id uuid.UUID, reason string) (Session, error) {
	return s.restrictSession(ctx, suspendSession, Caller{Key: &key}.Urgently(), id, reason)
}

// ResumeSession ends a session's suspension, and returns the session. The reason is for the audit trail. Errors:
// ErrInvalidAPIKey, ErrUnknownSession, *NotActiveError.
func (s *Store) ResumeSession(ctx context.Context, key APIKey, id uuid.UUID, reason string) (Session, error) {
	return s.restrictSession(ctx, resumeSession, Caller{Key: &key}, id, reason)
}

// restrictSession suspends or resumes one session.
func (s *Store) restrictSession(ctx context.Context, sc *script, c Caller, id uuid.UUID, reason string) (Session, error) {
	act, err := s.core.ActOnSession(ctx, c, id, nil)
	if err != nil {
		return Session{}, err
	}
	keys := s.sessionKeys(act, id)
	r, err := s.repeatWhileDue(ctx, act, id, func() (*reply, error) {
		return s.client.Run(ctx, act.Flow, sc, keys[:], act.Organization, act.Agent, reason, s.core.Audit(ctx, act))
	})
	if err != nil {
		return Session{}, act.ErrorFor(err)
	}
	s.core.Usage.NoteEvent(act.Organization)
	session, err := sessionFrom(r, id)
	if err == nil && session.Delegated != nil {
		err = unfinishedBelow(s.suspendBelow(ctx, act, id, reason))
	}
	return session, err
}
