package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// Once makes a change happen once, however often it is asked for and on whichever instance. Its first outcome, a refusal
// too, is kept for 24 hours with the change, in the change's own script, and given again. What let nobody in
// (ErrInvalidAPIKey, ErrInvalidToken) and what the store could not do is no outcome.
type Once struct {
	Key         string   // Idempotency-Key: of the caller's choice, which is one organization or one agent
	Fingerprint [32]byte // of what is asked: the same key with another one is ErrKeyReused
	// Replayed is set by the operation: its outcome is that of an earlier request, FirstRequest.
	Replayed     bool
	FirstRequest string

	// bounded refuses a new key beyond the organization's quotas and rates. What takes authority away or settles is not.
	bounded bool
	claim   claim // of the key, where it is claimed before the operation
}

// claim is which request had an idempotency key first, and whether that was one before this.
type claim struct {
	request string
	before  bool
}

func (o *Once) claimed(r *reply, err error) error {
	if err != nil {
		return nothingVisible(err)
	}
	o.claim = claim{r.text(0), r.text(1) != ""}
	return r.err
}

const onceLifetime = 24 * time.Hour

var (
	claimKey      = newScript("claim_key", writes)
	claimAgentKey = newScript("claim_agent_key", writes)
)

// perform runs an operation's script on an agent's cell, once if once is not nil. The script's first key is the agent's,
// its first argument the organization's id.
func (s *Store) perform(ctx context.Context, sc *script, act actor, once *Once, keys []string, args ...any) (*reply, error) {
	if once == nil {
		return s.run(ctx, act.flow, sc, keys, args...)
	}
	outcome := s.keys.outcome(act.agent, act.keyDigest(once, ""))
	held, err := s.reserveKey(ctx, act, once, outcome)
	if err != nil {
		return nil, err
	}
	r, err := s.performOnce(ctx, sc, act, once, outcome, keys, args)
	held.settle(err, once.Replayed)
	return r, err
}

func (s *Store) performOnce(ctx context.Context, sc *script, act actor, once *Once, outcome string, keys []string, args []any) (*reply, error) {
	c := newCommand(act.flow, 1+len(keys))
	c.keys(outcome)
	c.keys(keys...)
	c.arguments(onceArguments(ctx, act, once)...)
	c.arguments(args...)
	r, err := s.runCommand(ctx, sc.keyed, c)
	if err != nil {
		return nil, err
	}
	return once.read(r)
}

func onceArguments(ctx context.Context, act actor, once *Once) []any {
	return []any{once.Fingerprint, requestID(ctx), onceLifetime.Milliseconds(), act.family}
}

// read takes the outcome out of what once.lua answers, and notes whose it is.
func (o *Once) read(r *reply) (*reply, error) {
	o.FirstRequest, o.Replayed = r.text(0), r.text(1) != ""
	inner := r.list(2)
	if r.err != nil {
		return nil, r.err
	}
	if inner.err != nil {
		return nil, inner.err
	}
	return readReply(inner.values)
}

// keyDigest names an idempotency key of this actor: for the whole request, or for a part of a batch. Agents and
// organizations do not share keys, though their cells are.
func (a actor) keyDigest(once *Once, part string) string {
	owner := a.agent
	kind := "agent"
	if a.family == "" {
		owner, kind = a.organization, "organization"
	}
	return digest(kind, string(owner[:]), part, once.Key)
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte{byte(len(part) >> 8), byte(len(part))})
		h.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// admit returns nil if the caller's key opens its organization, and ties the idempotency key, if there is one, to this request.
// Errors: ErrInvalidAPIKey, ErrKeyReused.
func (s *Store) admit(ctx context.Context, c Caller, once *Once) error {
	key, f := *c.Key, s.proven.of(c)
	if once == nil {
		_, err := s.authenticate(ctx, f, key)
		return err
	}
	place := s.keys.outcome(key.Organization, digest("claim", string(key.Organization[:]), once.Key))
	held, err := s.reserveClaim(ctx, actor{organization: key.Organization, flow: f}, once, place)
	if err != nil {
		return err
	}
	err = once.claimed(s.runByKey(ctx, key, f, claimKey, []string{s.keys.organization(key.Organization), place},
		key.Hash, once.Fingerprint, onceLifetime.Milliseconds(), requestID(ctx)))
	held.settle(err, once.claim.before)
	return err
}
