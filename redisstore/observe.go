package redisstore

import (
	"context"
	"time"
)

// observed is one call to Redis, with its waiting and its repeats, as those see it who watch the store.
type observed struct {
	operation string // the name of its script, or of its command of Redis
	began     time.Time
	counts    *counts
	counted   operationID // as what
}

// observe begins to watch a call, whose context is the one to go on with.
func (s *Store) observe(ctx context.Context, operation string, began time.Time) (context.Context, observed) {
	return s.traced(ctx, operation), observed{operation: operation, began: began, counts: s.counts}
}

// end tells what came of the call.
func (o *observed) end(err error) {
	o.counts.called(o.counted, o.began, err)
}
