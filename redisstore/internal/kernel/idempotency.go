package kernel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
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

	// Credential and Seal are for an operation that issues a credential. Credential is the one that this request would issue;
	// a replay sets it to the one that the first request issued. Redis stores it sealed.
	Credential string
	Seal       Seal

	// The operation says what it does with the key. Bounded subjects a new key to the organization's quotas and rates; a revocation
	// or a settlement is not bounded: beyond a quota it runs without the key. At is the object of the operation, whose cell stores
	// the outcome; uuid.Nil for several.
	Bounded bool
	At      uuid.UUID

	Outcome Outcome // set by the operation
}

// Outcome is what came of the use of an idempotency key.
type Outcome struct {
	Replayed     bool   // the operation returns the outcome of an earlier request
	FirstRequest string // the id of the request whose outcome it is
	Forgotten    bool   // the operation ran without the key, because a quota leaves no room to store it
	Claim        claim  // on the key, if the operation claims it first
	stored       bool   // the outcome is stored, even if it is a refusal
}

// Seal encrypts a stored credential so that only its client can read it.
type Seal interface {
	Seal(credential string) string
	Open(sealed string) (credential string, opens bool)
}

const (
	// OutcomeLifetime is how long the outcome of an idempotency key is stored.
	OutcomeLifetime = 24 * time.Hour
	// unguessableKey is how many bytes an idempotency key needs where nothing else authenticates a repeated request.
	unguessableKey = 32
)

// Unguessable reports whether the key is long enough to be a secret, as a UUID is.
func (o *Idempotency) Unguessable() bool { return len(o.Key) >= unguessableKey }

// IsReplay reports whether the outcome is that of an earlier request with the key. Without a key (nil) it is not.
func (o *Idempotency) IsReplay() bool { return o != nil && o.Outcome.Replayed }

// SetBounded subjects a new key to the organization's quotas and rates. It does nothing without a key (nil).
func (o *Idempotency) SetBounded() {
	if o != nil {
		o.Bounded = true
	}
}

// SetObject says of which object the operation is. It does nothing without a key (nil).
func (o *Idempotency) SetObject(object uuid.UUID) {
	if o != nil {
		o.At = object
	}
}

// Perform runs an operation's script in an agent's cell, with an idempotency key unless idem is nil. The script's first key is
// the agent's, its first argument the organization's id.
func (s *Core) Perform(ctx context.Context, sc KeyedScript, act Actor, idem *Idempotency, keys []string, args ...any) (*redisclient.Reply, error) {
	if idem == nil || idem.Outcome.Forgotten {
		return s.Client.Run(ctx, act.Flow, sc.Script, keys, args...)
	}
	outcome := s.Keys.Outcome(act.Agent, act.KeyDigest(idem, ""))
	held, err := s.reserveKey(ctx, act, idem, outcome)
	if idem.forget(err) {
		return s.Client.Run(ctx, act.Flow, sc.Script, keys, args...)
	}
	if err != nil {
		return nil, err
	}
	idem.Outcome.stored = false
	r, err := s.performKeyed(ctx, sc, act, idem, outcome, keys, args)
	if idem.Outcome.stored { // a stored refusal takes as much memory as any outcome
		held.Finish(nil, idem.IsReplay())
	} else {
		held.Finish(err, idem.IsReplay())
	}
	return r, err
}

func (s *Core) performKeyed(ctx context.Context, sc KeyedScript, act Actor, idem *Idempotency, outcome string, keys []string, args []any) (*redisclient.Reply, error) {
	c := redisclient.NewCommand(act.Flow, 1+len(keys))
	c.Keys(outcome)
	c.Keys(keys...)
	c.Arguments(KeyedArguments(ctx, act, idem)...)
	c.Arguments(args...)
	r, err := s.Client.RunCommand(ctx, sc.Keyed, c)
	if err != nil {
		return nil, err
	}
	return idem.Read(r)
}

// KeyedArguments are the first arguments of a script with an idempotency key (lua/kernel/idempotent.lua).
func KeyedArguments(ctx context.Context, act Actor, idem *Idempotency) []any {
	return []any{idem.Fingerprint, RequestID(ctx), OutcomeLifetime.Milliseconds(), act.Family}
}

// Read returns the outcome in a reply of idempotent.lua, and sets FirstRequest and Replayed.
func (o *Idempotency) Read(r *redisclient.Reply) (*redisclient.Reply, error) {
	o.Outcome.FirstRequest, o.Outcome.Replayed = r.Text(0), r.Text(1) != ""
	inner := r.List(2)
	if err := cmp.Or(r.Err, inner.Err); err != nil {
		return nil, err
	}
	outcome, err := inner.Whole()
	o.Outcome.stored = err == nil || !IsNoOutcome(err) && err != ErrInvalidToken && !IsDue(err) && err != ErrNoOutcome
	return outcome, err
}

// forget says whether the operation runs without its idempotency key, because the quota leaves no room for it.
func (o *Idempotency) forget(refusal error) bool {
	o.Outcome.Forgotten = !o.Bounded && isA[*QuotaError](refusal)
	return o.Outcome.Forgotten
}

// KeyDigest names an idempotency key of this actor: for the whole request ("") or for a part of a batch. Keys of an agent, of an
// organization and of those that act in a session with delegated tokens differ, even in one cell.
func (a Actor) KeyDigest(idem *Idempotency, part string) string {
	if idem == nil {
		return ""
	}
	owner := a.Agent
	kind := "agent"
	if a.Family == "" {
		owner, kind = a.Organization, "organization"
	} else if a.session != uuid.Nil {
		owner, kind = a.session, "session"
	}
	return Digest(kind, string(owner[:]), part, idem.Key)
}

// Digest returns a short hash that tells lists of texts apart.
func Digest(parts ...string) string {
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
