package fleet

import (
	"context"
	"time"
)

// charge charges the session for an action, and checks the answer.
func (f *fleet) charge(ctx context.Context, s *session, a action, due time.Time) *recorder {
	known := s.send(effect{charge: a.requested})
	t := f.call(ctx, opAction, due, s.does(a))
	f.audit.add(checkAction(s.finish(known, known.requested, t.reply())))
	return t
}
