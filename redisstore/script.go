package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/lua"
	"remit/money"
)

// script is one file of package lua.
type script struct {
	operation string // the file's name without its ending
	source    []byte
	sha       string // SHA-1 in hex, by which Redis names a script it has seen
	name      []byte // the same
	access    access
	counted   operationID // as what its calls are
	keyed     *script     // the same once for an idempotency key; nil for operations that take none
}

func newScript(name string, a access) *script {
	sc := asScript(name, lua.Source(name), a)
	sc.counted = asOperation(name)
	return sc
}

// newKeyedScript is newScript for an operation that writes and can be asked for with an idempotency key.
func newKeyedScript(name string) *script {
	sc := newScript(name, writes)
	sc.keyed = asScript(name, lua.IdempotentSource(name), writes)
	sc.keyed.counted = sc.counted
	return sc
}

// newSealedScript is newKeyedScript for an operation that gives a credential.
func newSealedScript(name string) *script {
	sc := newScript(name, writes)
	sc.keyed = asScript(name, lua.SealedIdempotentSource(name), writes)
	sc.keyed.counted = sc.counted
	return sc
}

func asScript(operation, source string, a access) *script {
	sum := sha1.Sum([]byte(source))
	name := hex.EncodeToString(sum[:])
	return &script{operation: operation, source: []byte(source), sha: name, name: []byte(name), access: a}
}

const (
	// maxAttempts and retryPause are for what passes at once, or does not: a refused connection.
	maxAttempts = 3
	retryPause  = 5 * time.Millisecond
	// A slot that moves to another node of a cluster keeps its keys apart for as long as it takes to move them, which for
	// a usual slot is some milliseconds.
	movingTime  = time.Second
	movingPause = 20 * time.Millisecond
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
	began := time.Now()
	ctx, seen := s.observe(ctx, sc.operation, began)
	seen.counted = sc.counted
	r, err := s.runUntil(ctx, sc, c, began)
	seen.end(err)
	return r, err
}

func (s *Store) runUntil(ctx context.Context, sc *script, c *command, began time.Time) (*reply, error) {
	deadline := deadlineOf(ctx, began)
	c.confirm = s.confirms(sc.access)
	for attempt := 1; ; attempt++ {
		values, err := s.evaluate(ctx, deadline, sc, c)
		if err == nil || errors.Is(err, errUnconfirmed) {
			if refusal := c.reply.read(values); refusal != nil && (err == nil || refusal != ErrTokenReused) {
				return nil, refusal // it acknowledges nothing; but for a reuse, which has revoked its family
			}
			return &c.reply, classify(err, sc.access)
		}
		s.suspect(err)
		if !goesAgain(ctx, err, attempt, began) {
			return nil, c.classify(err, sc.access)
		}
	}
}

// goesAgain says whether a command that never ran is worth sending again, after a pause.
func goesAgain(ctx context.Context, err error, attempt int, began time.Time) bool {
	switch {
	case moving(err):
		return time.Since(began) < movingTime && pause(ctx, movingPause)
	case passing(err):
		return attempt < maxAttempts && pause(ctx, retryPause)
	default:
		return false
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
	if err := s.send(ctx, deadline, c, cmd); err != nil && !errors.Is(err, errUnconfirmed) {
		return nil, err
	}
	return cmd.answer()
}

// call runs one command of Redis itself, once, and returns what it answers, nil for nothing.
func (s *Store) call(ctx context.Context, f flow, a access, verb, key string, args ...string) (_ any, err error) {
	began := time.Now()
	ctx, seen := s.observe(ctx, verb, began)
	seen.counted = operationOf(verb)
	defer func() { seen.end(err) }()
	c := newPlainCommand(f, verb, key, args...)
	cmd := onceCmd{redis.NewCmd(ctx, c.words...)}
	deadline := deadlineOf(ctx, began)
	if s.confirms(a) {
		err = s.writeConfirmed(&bounds{ctx, deadline}, key, cmd.Cmd)
	} else {
		err = s.send(ctx, deadline, c, cmd)
	}
	if err != nil && err != redis.Nil {
		return nil, s.trouble(err, a)
	}
	return cmd.Val(), nil
}

// deadlineOf is until when a call that begins now may take: its own time, or the caller's when that ends sooner.
func deadlineOf(ctx context.Context, now time.Time) time.Time {
	deadline := now.Add(callTimeout)
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
// answered before it broke too. What is not confirmed has both an answer and an error.
func (c onceCmd) answer() ([]any, error) {
	if values, ok := c.Val().([]any); ok && len(values) > 0 {
		if errors.Is(c.Err(), errUnconfirmed) {
			return values, c.Err()
		}
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
	if code == "ok" || code == "outcome" {
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

// number reads a count, an amount or a time: none of them is below 0.
func (r *reply) number(i int) int64 {
	return r.unsigned(r.text(i))
}

// numberOr0 returns 0 for nil or ”: something that has not happened, or was never counted.
func (r *reply) numberOr0(i int) int64 {
	text := r.optional(i)
	if text == "" {
		return 0
	}
	return r.unsigned(text)
}

func (r *reply) unsigned(text string) int64 {
	number := r.parse(text)
	if number < 0 && r.err == nil {
		r.err = fmt.Errorf("%w: %d is below 0", errReply, number)
	}
	return number
}

func (r *reply) parse(text string) int64 {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: %q is no number", errReply, text)
	}
	return number
}

func (r *reply) money(i int) money.MicroUSD { return money.MicroUSD(r.number(i)) }

func (r *reply) time(i int) time.Time { return r.timeAt(r.number(i)) }

// timeSince reads how many ms after another time it was; before that when negative, for clocks differ.
func (r *reply) timeSince(other time.Time, i int) time.Time {
	return r.timeAt(other.UnixMilli() + r.parse(r.text(i)))
}

// maxTime is the last ms that RFC 3339 can write.
const maxTime = 253402300799999

func (r *reply) timeAt(ms int64) time.Time {
	if (ms < 0 || ms > maxTime) && r.err == nil {
		r.err = fmt.Errorf("%w: no time is %d ms after 1970", errReply, ms)
	}
	return time.UnixMilli(ms)
}

// generation reads that of a refresh token.
func (r *reply) generation(i int) uint32 {
	number := r.number(i)
	if (number < 1 || number > math.MaxUint32) && r.err == nil {
		r.err = fmt.Errorf("%w: no generation is %d", errReply, number)
	}
	return uint32(number)
}

// timeOrZero returns the zero time for nil or ”.
func (r *reply) timeOrZero(i int) time.Time {
	if ms := r.numberOr0(i); ms != 0 {
		return r.timeAt(ms)
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
