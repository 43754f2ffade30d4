package server

import (
	"errors"

	"remit/redisstore"
)

// conflict refuses to end or change a session that is not active: a conflict of states, where a charge is a refusal.
type conflict struct{ cause *redisstore.NotActiveError }

func (e *conflict) Error() string { return e.cause.Error() }

// asConflict makes a conflict of a refusal for the session's status.
func asConflict(err error) error {
	var notActive *redisstore.NotActiveError
	if errors.As(err, &notActive) {
		return &conflict{notActive}
	}
	return err
}

func (e *conflict) problem() problem {
	p := newProblem(409, "session_not_active", e.Error())
	p.SessionStatus = e.cause.Status
	return p
}
