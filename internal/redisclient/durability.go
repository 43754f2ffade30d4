package redisclient

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Durability says when a write is acknowledged.
type Durability string

const (
	// Local acknowledges a write once the primary has it, as safely as its appendfsync keeps it.
	Local Durability = "local"
	// Replicated acknowledges a write once a replica has confirmed it too. A write that none confirms in time is
	// ErrOutcomeUnknown.
	Replicated Durability = "replicated"
)

const (
	confirmTime  = time.Second            // for a replica at the most, unless the call has less
	confirmSpare = 100 * time.Millisecond // left for the answer, so that it comes before the call's deadline
	markLifetime = 24 * time.Hour
)

// confirmer ends the pipelines of one server with a WAIT. That waits for what its own connection has written last, and on
// Redis 7.2 and later for nothing if that wrote nothing, as a script does that finds its work done already: by another
// connection perhaps, a moment ago, and on no replica yet. So the client sends a write of its own, the mark, before it.
type confirmer struct {
	keys      keyspace
	markWrite *Script
	suspect   func(error)            // receives errors that may show that another server is the primary
	mark      atomic.Pointer[string] // a key that the server has, or had
	places    chan struct{}          // holds one value for each command that is confirmed by itself
}

// confirmPlaces is how many commands may be confirmed by themselves at once: each keeps a connection that others need until a
// replica answers.
const confirmPlaces = 16

func newConfirmer(keys keyspace, markWrite *Script, suspect func(error)) *confirmer {
	return &confirmer{keys: keys, markWrite: markWrite, suspect: suspect, places: make(chan struct{}, confirmPlaces)}
}

// takePlace waits for a place until it would be too late to send anything.
func (c *confirmer) takePlace(ctx *bounds) error {
	select {
	case c.places <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(ctx.deadline) - minTimeLeft)
	defer timer.Stop()
	select {
	case c.places <- struct{}{}:
		return nil
	case <-timer.C:
		return errTooLate
	case <-ctx.Done():
		return errCallerLeft
	}
}

// end adds to a pipeline of writes what confirms them. It returns a function to call after the pipeline: that returns why the
// writes are not confirmed, or nil if they are. The key is one that the pipeline writes. A nil confirmer confirms everything.
func (c *confirmer) end(p redis.Pipeliner, key string, deadline time.Time) (failure func() error) {
	if c == nil {
		return func() error { return nil }
	}
	mark := c.mark.Load()
	if mark == nil {
		own := c.keys.mark(key)
		mark = &own
		c.mark.Store(mark)
	}
	return c.addMark(p, *mark, deadline)
}

// endAsking is end for a server that gets commands after ASK for a slot that it does not own yet. It may have no other, so the
// mark is in that slot.
func (c *confirmer) endAsking(p redis.Pipeliner, key string, deadline time.Time) (failure func() error) {
	p.Do(context.Background(), "asking")
	return c.addMark(p, c.keys.mark(key), deadline)
}

// addMark adds the mark and the WAIT. It sends the script with its source each time: in a pipeline it could not be sent again after
// NOSCRIPT.
func (c *confirmer) addMark(p redis.Pipeliner, mark string, deadline time.Time) (failure func() error) {
	marked := redis.NewCmd(context.Background(), "eval", c.markWrite.source, 1, mark, markLifetime.Milliseconds())
	_ = p.Process(context.Background(), marked) // queues it
	most := min(confirmTime, time.Until(deadline)-confirmSpare)
	wait := redis.NewIntCmd(context.Background(), "wait", 1, max(most.Milliseconds(), 1)) // 0 would be for ever
	_ = p.Process(context.Background(), wait)                                             // queues it
	return func() error {
		if err := marked.Err(); err != nil {
			c.mark.Store(nil) // its slot may have moved: the next takes one of its own
			return c.failed(err)
		}
		switch replicas, err := wait.Result(); {
		case err != nil:
			return c.failed(err)
		case replicas < 1:
			return fmt.Errorf("%w in time", errUnconfirmed)
		}
		return nil
	}
}

// failed does not wrap the cause: whatever became of the WAIT, the writes before it may have happened.
func (c *confirmer) failed(cause error) error {
	c.suspect(cause)
	return fmt.Errorf("%w: %v", errUnconfirmed, cause)
}

// send sends one command to a server with what confirms it, and returns its error, or why it is not confirmed. Asking is for a
// server that does not have the key's slot yet.
func (c *confirmer) send(ctx *bounds, server *redis.Client, key string, cmd redis.Cmder, asking bool) error {
	if err := c.takePlace(ctx); err != nil {
		return err
	}
	defer func() { <-c.places }()
	pipeline, end := server.Pipeline(), c.end
	if asking {
		pipeline.Do(ctx, "asking")
		end = c.endAsking
	}
	_ = pipeline.Process(ctx, cmd) // queues it
	failure := end(pipeline, key, ctx.deadline)
	_, broken := pipeline.Exec(ctx)
	unconfirmed := failure()
	if script, isScript := cmd.(unretriedCmd); isScript {
		script.explain(broken)
		script.note(unconfirmed)
		_, err := script.answer(nil)
		return err
	}
	if err := cmd.Err(); err != nil && err != redis.Nil {
		return err
	}
	return cmp.Or(unconfirmed, cmd.Err()) // also of a command that found its work done
}
