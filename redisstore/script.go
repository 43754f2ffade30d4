package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/lua"
	"remit/money"
)

// script is one file of package lua.
type script struct {
	source string
	sha    string // SHA-1 in hex, by which Redis names a script it has seen
	access access
	keyed  *script // the same once for an idempotency key; nil for operations that take none
}

func newScript(name string, a access) *script { return asScript(lua.Source(name), a) }

// newKeyedScript is newScript for an operation that writes and can be asked for with an idempotency key.
func newKeyedScript(name string) *script {
	sc := newScript(name, writes)
	sc.keyed = asScript(lua.OnceSource(name), writes)
	return sc
}

func asScript(source string, a access) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha: hex.EncodeToString(sum[:]), access: a}
}

const (
	maxAttempts = 3
	retryPause  = 5 * time.Millisecond
)

// run runs a script and returns its reply if it is {'ok', …}, else the error that its code stands for.
//
// It sends a script again only when the one before certainly did not run: NOSCRIPT, a refused connection, a slot that
// is moving. Everything else is the caller's to know as ErrUnavailable or ErrOutcomeUnknown.
func (s *Store) run(ctx context.Context, f flow, sc *script, keys []string, args ...any) (*reply, error) {
	c := newCommand(f, len(keys))
	c.keys(keys...)
	c.arguments(args...)
	return s.runCommand(ctx, sc, c)
}

func (s *Store) runCommand(ctx context.Context, sc *script, c *command) (*reply, error) {
	deadline := deadlineOf(ctx)
	for attempt := 1; ; attempt++ {
		values, err := s.evaluate(ctx, deadline, sc, c)
		if err == nil {
			if err := c.reply.read(values); err != nil {
				return nil, err
			}
			return &c.reply, nil
		}
		if attempt == maxAttempts || !passing(err) || !pause(ctx, retryPause) {
			return nil, classify(err, sc.access)
		}
	}
}

func (s *Store) evaluate(ctx context.Context, deadline time.Time, sc *script, c *command) ([]any, error) {
	values, err := s.sendOnce(ctx, deadline, c, c.of(ctx, sc, false))
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.sendOnce(ctx, deadline, c, c.of(ctx, sc, true)) // which also makes it known to that server
	}
	return values, err
}

func (s *Store) sendOnce(ctx context.Context, deadline time.Time, c *command, cmd onceCmd) ([]any, error) {
	if err := s.send(ctx, deadline, c, cmd); err != nil {
		return nil, err
	}
	return cmd.answer()
}

// call runs one command of Redis itself, once, and returns what it answers; redis.Nil for nothing.
func (s *Store) call(ctx context.Context, f flow, a access, verb, key string, args ...string) (any, error) {
	c := newPlainCommand(f, verb, key, args...)
	cmd := onceCmd{redis.NewCmd(ctx, c.words...)}
	switch err := s.send(ctx, deadlineOf(ctx), c, cmd); err {
	case nil, redis.Nil:
		return cmd.Val(), err
	default:
		return nil, classify(err, a)
	}
}

// deadlineOf is until when a call may take: its own time, or the caller's when that ends sooner.
func deadlineOf(ctx context.Context) time.Time {
	deadline := time.Now().Add(callTimeout)
	if callers, ok := ctx.Deadline(); ok && callers.Before(deadline) {
		return callers
	}
	return deadline
}

// onceCmd is a command that go-redis never sends a second time after its reply was lost.
type onceCmd struct{ *redis.Cmd }

func (onceCmd) NoRetry() bool { return true }

// explain gives a command that has neither an answer nor an error that of its pipeline: go-redis leaves it without one when
// a new connection was refused by an answer of Redis (WRONGPASS).
func (c onceCmd) explain(pipeline error) {
	if pipeline != nil && c.Err() == nil && c.Val() == nil {
		c.SetErr(pipeline)
	}
}

// failure is why there is no answer; see answer.
func (c onceCmd) failure() error {
	if c.Val() != nil {
		return nil
	}
	return c.Err()
}

// answer returns what Redis answered. When a pipeline breaks, go-redis gives its error to all its commands, those that were
// answered before it broke too.
func (c onceCmd) answer() ([]any, error) {
	if values, ok := c.Val().([]any); ok && len(values) > 0 {
		return values, nil
	}
	return c.Slice()
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

// reply is what a script answered after its code. The first value that is not what its reader asked for is kept in
// err; readers check it once, at the end.
type reply struct {
	values []any
	err    error
}

// read takes a reply's values. Its error is the refusal that its code stands for.
func (r *reply) read(values []any) error {
	if len(values) == 0 {
		return fmt.Errorf("%w: empty reply", errReply)
	}
	code, _ := values[0].(string)
	r.values = values[1:]
	if code == "ok" || code == "once" {
		return nil
	}
	refusal, known := refusals[code]
	if !known {
		return fmt.Errorf("%w: code %q", errReply, code)
	}
	return refusal(r)
}

func readReply(values []any) (*reply, error) {
	r := &reply{}
	if err := r.read(values); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *reply) text(i int) string {
	if i < len(r.values) {
		if text, ok := r.values[i].(string); ok {
			return text
		}
	}
	r.err = fmt.Errorf("%w: no text at %d", errReply, i)
	return ""
}

// optional returns "" for a nil too: a field that the object does not have.
func (r *reply) optional(i int) string {
	if i < len(r.values) && r.values[i] == nil {
		return ""
	}
	return r.text(i)
}

func (r *reply) number(i int) int64 {
	return r.parse(r.text(i))
}

// numberOr0 returns 0 for nil or ”: something that has not happened, or was never counted.
func (r *reply) numberOr0(i int) int64 {
	text := r.optional(i)
	if text == "" {
		return 0
	}
	return r.parse(text)
}

func (r *reply) parse(text string) int64 {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: %q is no number", errReply, text)
	}
	return number
}

func (r *reply) money(i int) money.MicroUSD { return money.MicroUSD(r.number(i)) }

func (r *reply) time(i int) time.Time { return time.UnixMilli(r.number(i)) }

// timeSince reads how many ms after another time it was; before that when negative, for clocks differ.
func (r *reply) timeSince(other time.Time, i int) time.Time {
	return other.Add(time.Duration(r.number(i)) * time.Millisecond)
}

// timeOrZero returns the zero time for nil or ”.
func (r *reply) timeOrZero(i int) time.Time {
	if ms := r.numberOr0(i); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

func (r *reply) id(i int) uuid.UUID {
	id, err := uuid.FromBytes([]byte(r.text(i)))
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: no id at %d", errReply, i)
	}
	return id
}

func (r *reply) list(i int) *reply {
	if i < len(r.values) {
		if values, ok := r.values[i].([]any); ok {
			return &reply{values: values}
		}
	}
	return &reply{err: fmt.Errorf("%w: no array at %d", errReply, i)}
}
