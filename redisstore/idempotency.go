package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// Idempotency is an idempotency key and the result of its use. Requests with the same key make one change, whichever
// instances serve them. The script that makes the change also stores its first outcome for 24 hours, and later requests get
// that outcome. A refusal by a limit or a state is an outcome. Failed authentication, an unknown id, a scope that is not held
// and a failure of the store are not.
type Idempotency struct {
	Key         string   // chosen by the caller; each organization, each agent and each session with delegated tokens has its own keys
	Fingerprint [32]byte // of the request; the same key with another fingerprint is ErrIdempotencyKeyReused
	// The operation sets Replayed if it returns the outcome of an earlier request, whose id it sets in FirstRequest.
	Replayed     bool
	FirstRequest string

	// bounded subjects a new key to the organization's quotas and rates. A revocation or a settlement is not bounded: beyond a
	// quota it runs without the key.
	bounded bool

	// Credential and Seal are for an operation that issues a credential. Credential is the one that this request would issue;
	// a replay sets it to the one that the first request issued. Redis stores it sealed.
	Credential string
	Seal       Seal

	stored    bool // set by the operation: its outcome is stored, even if it is a refusal
	forgotten bool // set by the operation: it runs without the key, because a quota leaves no room to store it

	claim claim     // on the key, if the operation claims it first
	at    uuid.UUID // the object of the operation, whose cell stores the outcome; uuid.Nil for several
}

// Seal encrypts a stored credential so that only its client can read it.
type Seal interface {
	Seal(credential string) string
	Open(sealed string) (credential string, opens bool)
}

const (
	outcomeLifetime = 24 * time.Hour
	// unguessableKey is how many bytes an idempotency key needs where nothing else authenticates a repeated request.
	unguessableKey = 32
)

// Unguessable reports whether the key is long enough to be a secret, as a UUID is.
func (o *Idempotency) Unguessable() bool { return len(o.Key) >= unguessableKey }

func isReplayed(o *Idempotency) bool { return o != nil && o.Replayed }

// perform runs an operation's script in an agent's cell, with an idempotency key unless idem is nil. The script's first key is
// the agent's, its first argument the organization's id.
func (s *Store) perform(ctx context.Context, sc keyedScript, act actor, idem *Idempotency, keys []string, args ...any) (*reply, error) {
	if idem == nil || idem.forgotten {
		return s.client.Run(ctx, act.flow, sc.script, keys, args...)
	}
	outcome := s.keys.outcome(act.agent, act.keyDigest(idem, ""))
	held, err := s.reserveKey(ctx, act, idem, outcome)
	if idem.forget(err) {
		return s.client.Run(ctx, act.flow, sc.script, keys, args...)
	}
	if err != nil {
		return nil, err
	}
	idem.stored = false
	r, err := s.performKeyed(ctx, sc, act, idem, outcome, keys, args)
	if idem.stored { // a stored refusal takes as much memory as any outcome
		held.finish(nil, idem.Replayed)
	} else {
		held.finish(err, idem.Replayed)
	}
	return r, err
}

func (s *Store) performKeyed(ctx context.Context, sc keyedScript, act actor, idem *Idempotency, outcome string, keys []string, args []any) (*reply, error) {
	c := redisclient.NewCommand(act.flow, 1+len(keys))
	c.Keys(outcome)
	c.Keys(keys...)
	c.Arguments(keyedArguments(ctx, act, idem)...)
	c.Arguments(args...)
	r, err := s.client.RunCommand(ctx, sc.keyed, c)
	if err != nil {
		return nil, err
	}
	return idem.read(r)
}

func keyedArguments(ctx context.Context, act actor, idem *Idempotency) []any {
	return []any{idem.Fingerprint, requestID(ctx), outcomeLifetime.Milliseconds(), act.family}
}

// read returns the outcome in a reply of idempotent.lua, and sets FirstRequest and Replayed.
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
	o.stored = err == nil || !isNoOutcome(err) && err != ErrInvalidToken && !isDue(err) && err != errNoOutcome
	return outcome, err
}

// forget says whether the operation runs without its idempotency key, because the quota leaves no room for it.
func (o *Idempotency) forget(refusal error) bool {
	var quota *QuotaError
	o.forgotten = !o.bounded && errors.As(refusal, &quota)
	return o.forgotten
}

// keyDigest names an idempotency key of this actor: for the whole request ("") or for a part of a batch. Keys of an agent, of an
// organization and of those that act in a session with delegated tokens differ, even in one cell.
func (a actor) keyDigest(idem *Idempotency, part string) string {
	if idem == nil {
		return ""
	}
	owner := a.agent
	kind := "agent"
	if a.family == "" {
		owner, kind = a.organization, "organization"
	} else if a.session != uuid.Nil {
		owner, kind = a.session, "session"
	}
	return digest(kind, string(owner[:]), part, idem.Key)
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
