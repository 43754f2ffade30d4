package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"
	"remit/redisclient"
)

// Idempotency makes a change happen once, however often it is asked for and on whichever instance. Its first outcome, a refusal by
// a limit or a state too, is kept for 24 hours with the change, in the change's own script, and given again. Failed
// authentication, an id that does not exist, a scope that is not held and what the store could not do are no outcomes.
type Idempotency struct {
	Key         string   // Idempotency-Key: of the caller's choice, which is one organization or one agent
	Fingerprint [32]byte // of what is asked: the same key with another one is ErrKeyReused
	// Replayed is set by the operation: its outcome is that of an earlier request, FirstRequest.
	Replayed     bool
	FirstRequest string

	// bounded refuses a new key beyond the organization's quotas and rates. What takes authority away or settles is not:
	// beyond a quota it goes on without the key.
	bounded bool

	// Credential and Seal are for an operation that gives a credential: Credential is the one that this request would give,
	// and is set to the one that the first request gave. Redis keeps it sealed.
	Credential string
	Seal       Seal

	kept      bool // set by the operation: its outcome is kept, a refusal too
	forgotten bool // set by the operation: it is beyond a quota and goes on, and the key is not remembered

	claim claim     // of the key, where it is claimed before the operation
	at    uuid.UUID // what the operation is about: the outcome is kept in its cell; uuid.Nil for several
}

// Seal is what a credential is kept under.
type Seal interface {
	Seal(credential string) string
	Open(sealed string) (credential string, opens bool)
}

const (
	onceLifetime = 24 * time.Hour
	// unguessableKey is how long an idempotency key must be where it is all that shows who asks.
	unguessableKey = 32
)

// Unguessable says whether the key is long enough to be a secret, as a UUID is.
func (o *Idempotency) Unguessable() bool { return len(o.Key) >= unguessableKey }

// perform runs an operation's script on an agent's cell, once if once is not nil. The script's first key is the agent's,
// its first argument the organization's id.
func (s *Store) perform(ctx context.Context, sc keyedScript, act actor, once *Idempotency, keys []string, args ...any) (*reply, error) {
	if once == nil || once.forgotten {
		return s.client.Run(ctx, act.flow, sc.script, keys, args...)
	}
	outcome := s.keys.outcome(act.agent, act.keyDigest(once, ""))
	held, err := s.reserveKey(ctx, act, once, outcome)
	if once.forget(err) {
		return s.client.Run(ctx, act.flow, sc.script, keys, args...)
	}
	if err != nil {
		return nil, err
	}
	once.kept = false
	r, err := s.performOnce(ctx, sc, act, once, outcome, keys, args)
	if once.kept { // a refusal takes as much memory as any outcome
		held.settle(nil, once.Replayed)
	} else {
		held.settle(err, once.Replayed)
	}
	return r, err
}

func (s *Store) performOnce(ctx context.Context, sc keyedScript, act actor, once *Idempotency, outcome string, keys []string, args []any) (*reply, error) {
	c := redisclient.NewCommand(act.flow, 1+len(keys))
	c.Keys(outcome)
	c.Keys(keys...)
	c.Arguments(onceArguments(ctx, act, once)...)
	c.Arguments(args...)
	r, err := s.client.RunCommand(ctx, sc.keyed, c)
	if err != nil {
		return nil, err
	}
	return once.read(r)
}

func onceArguments(ctx context.Context, act actor, once *Idempotency) []any {
	return []any{once.Fingerprint, requestID(ctx), onceLifetime.Milliseconds(), act.family}
}

// read takes the outcome out of what idempotent.lua answers, and notes whose it is.
func (o *Idempotency) read(r *reply) (*reply, error) {
	o.FirstRequest, o.Replayed = r.Text(0), r.Text(1) != ""
	inner := r.List(2)
	if r.Err != nil {
		return nil, r.Err
	}
	if inner.Err != nil {
		return nil, inner.Err
	}
	outcome, err := readReply(inner.Values)
	o.kept = err == nil || !isNoOutcome(err) && err != ErrInvalidToken && err != errHoldsDue
	return outcome, err
}

// forget says whether the operation goes on without its idempotency key, for which there is no room.
func (o *Idempotency) forget(refusal error) bool {
	var quota *QuotaError
	o.forgotten = !o.bounded && errors.As(refusal, &quota)
	return o.forgotten
}

// keyDigest names an idempotency key of this actor: for the whole request, or for a part of a batch. Agents and
// organizations do not share keys, though their cells are.
func (a actor) keyDigest(once *Idempotency, part string) string {
	if once == nil {
		return ""
	}
	owner := a.agent
	kind := "agent"
	if a.family == "" {
		owner, kind = a.organization, "organization"
	}
	return digest(kind, string(owner[:]), part, once.Key)
}

func digest(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString(hashOf(parts...)[:16])
}

func hashOf(parts ...string) []byte {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte{byte(len(part) >> 8), byte(len(part))})
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}
