package redisclient

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxAttempts and retryPause are for a refused connection, which passes at once or not at all.
	maxAttempts = 3
	retryPause  = 5 * time.Millisecond
	// A slot that moves to another node of a cluster has its keys on both until the move ends, which for a usual slot takes
	// some milliseconds.
	movingTime  = time.Second
	movingPause = 20 * time.Millisecond
)

// Run runs a script and returns its reply if it succeeds, else the refusal that its code stands for, ErrUnavailable,
// ErrOutcomeUnknown or ErrReply. Arguments are those that Command.Arguments takes.
//
// It sends a script again only when the one before certainly did not run: NOSCRIPT, a refused connection, a slot that is
// moving.
func (c *Client) Run(ctx context.Context, f Flow, sc *Script, keys []string, args ...any) (*Reply, error) {
	cmd := usedCommands.Get().(*Command).begin(f, len(keys))
	cmd.Keys(keys...)
	cmd.Arguments(args...)
	r, err := c.RunCommand(ctx, sc, cmd)
	if err == nil {
		cmd.recycle()
	}
	return r, err
}

// RunCommand is Run for a command that was put together by the caller. A success that no replica has confirmed has both a
// reply and ErrOutcomeUnknown.
func (c *Client) RunCommand(ctx context.Context, sc *Script, cmd *Command) (*Reply, error) {
	if c.watches(sc) {
		c.underWay.Add(1)
		defer c.underWay.Add(-1)
		c.config.Watch.Before(ctx, cmd.flow, cmd.keysOfScript())
	}
	began := time.Now()
	deadline := deadlineOf(ctx, began)
	ctx = c.traced(ctx, sc.name)
	cmd.confirm = c.confirms(sc.access)
	for attempt := 1; ; attempt++ {
		sent := cmd.of(ctx, sc, false)
		values, err := sent.answer(c.send(ctx, deadline, cmd, sent))
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			sent = cmd.of(ctx, sc, true) // which also makes it known to that server
			values, err = sent.answer(c.send(ctx, deadline, cmd, sent))
		}
		if c.goesAgain(ctx, err, attempt, began) {
			continue
		}
		r, err := c.read(sc, cmd, values, err)
		c.metrics.called(sc.counted, began, err)
		c.watched(sc, cmd, r, err)
		return r, err
	}
}

// goesAgain says whether a command never ran and is worth sending again, and waits until then.
func (c *Client) goesAgain(ctx context.Context, err error, attempt int, began time.Time) bool {
	if err == nil || isUnconfirmed(err) {
		return false
	}
	c.Suspect(err)
	switch {
	case moving(err):
		return time.Since(began) < movingTime && pause(ctx, movingPause)
	case passing(err):
		return attempt < maxAttempts && pause(ctx, retryPause)
	default:
		return false
	}
}

// read reads the answer of a script, or classifies why there is none.
func (c *Client) read(sc *Script, cmd *Command, answer any, err error) (*Reply, error) {
	if err != nil && !isUnconfirmed(err) {
		return nil, cmd.classify(err, sc.access)
	}
	r := &Reply{}
	if refusal := c.config.Refusals.Read(r, answer); refusal != nil && (err == nil || !hasWritten(refusal)) {
		return nil, refusal // it acknowledges nothing, so nothing need be confirmed
	}
	return r, classify(err, sc.access)
}

func hasWritten(refusal error) bool {
	_, has := refusal.(*WritingRefusal)
	return has
}

// Call runs one command of Redis itself, once, and returns its answer, nil for none. The command has one key. It is counted
// by its verb.
func (c *Client) Call(ctx context.Context, f Flow, a Access, verb, key string, args ...string) (any, error) {
	began := time.Now()
	deadline := deadlineOf(ctx, began)
	ctx = c.traced(ctx, verb)
	cmd := newPlainCommand(f, verb, key, args...)
	sent := unretriedCmd{redis.NewCmd(ctx, cmd.words...)}
	var err error
	if c.confirms(a) {
		err = c.writeConfirmed(&bounds{ctx, deadline}, key, sent.Cmd)
	} else {
		err = c.send(ctx, deadline, cmd, sent)
	}
	var answer any
	switch err {
	case nil:
		answer = sent.Val()
	case redis.Nil:
		err = nil
	default: // a pipeline may still write the answer of a caller that has left
		err = c.Classify(err, a)
	}
	c.metrics.called(commandOperations[verb], began, err)
	return answer, err
}

// Fields reads fields of a hash (HMGET), and returns what it answered: a value or nil for each.
func (c *Client) Fields(ctx context.Context, f Flow, key string, fields ...string) (*Reply, error) {
	answer, err := c.Call(ctx, f, Reads, "hmget", key, fields...)
	if err != nil {
		return nil, err
	}
	values, ok := answer.([]any)
	if !ok || len(values) != len(fields) {
		return nil, ErrReply
	}
	return &Reply{Values: values}, nil
}

// deadlineOf returns until when a call that begins now may take: its own time, or the caller's when that ends sooner.
func deadlineOf(ctx context.Context, now time.Time) time.Time {
	deadline := now.Add(CallTimeout)
	if callers, ok := ctx.Deadline(); ok && callers.Before(deadline) {
		return callers
	}
	return deadline
}

// pause returns false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
