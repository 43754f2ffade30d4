package server

import (
	"errors"

	"remit/redisstore"
	"remit/server/internal/web"
)

// conflict refuses to end or change a session that is not active, with 409. A charge of such a session is refused with 403.
type conflict struct{ cause *redisstore.NotActiveError }

func (e *conflict) Error() string { return e.cause.Error() }

// asConflict turns a refusal for the status of a session into a conflict.
func asConflict(err error) error {
	var notActive *redisstore.NotActiveError
	if errors.As(err, &notActive) {
		return &conflict{notActive}
	}
	return err
}

func (e *conflict) Problem() web.Problem {
	p := web.NewProblem(409, "session_not_active", e.Error())
	p.SessionStatus = e.cause.Status
	return p
}
