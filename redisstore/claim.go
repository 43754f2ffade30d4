package redisstore

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
)

// An organization may ask of any of its agents, and the outcome is kept in that agent's cell. So its idempotency keys are
// tied to their requests in its own cell first, by a claim.

var (
	claimKey      = newScript("claim_key", writes)
	claimAgentKey = newScript("claim_agent_key", writes)
	releaseClaim  = newScript("release_claim", tidies)
)

// abandonedAfter is the age at which a claim without an outcome no longer belongs to a running request: many times what a
// request may take.
const abandonedAfter = time.Minute

// claim is which request had an idempotency key first: one before this, or this one. It is neither before a claim was made.
type claim struct {
	request      string
	before, mine bool
}

func (o *Idempotency) claimed(r *reply, err error) error {
	if err != nil {
		return nothingVisible(err)
	}
	before := r.Text(1) != ""
	o.claim = claim{r.Text(0), before, !before}
	return r.Err
}

// admit returns nil if the caller's key opens its organization, and ties the idempotency key, if there is one, to this request.
// Errors: ErrInvalidAPIKey, ErrKeyReused, *QuotaError, *RateError.
func (s *Store) admit(ctx context.Context, c Caller, once *Idempotency) error {
	if once == nil {
		_, err := s.authenticate(ctx, s.proven.of(c), *c.Key)
		return err
	}
	err := s.claim(ctx, c, once)
	if err == ErrKeyReused && s.releaseAbandoned(ctx, c, once) {
		err = s.claim(ctx, c, once)
	}
	if once.forget(err) {
		return s.admit(ctx, c, nil)
	}
	return err
}

func (s *Store) claim(ctx context.Context, c Caller, once *Idempotency) error {
	key, cell := *c.Key, ""
	if once.at != uuid.Nil {
		cell = cellText(cellOf(once.at))
	}
	f, place := s.proven.of(c), s.claimPlace(key.Organization, once)
	held, err := s.reserveClaim(ctx, actor{organization: key.Organization, flow: f}, once, place)
	if err != nil {
		return err
	}
	err = once.claimed(s.runByKey(ctx, key, f, claimKey, []string{s.keys.organization(key.Organization), place},
		key.Hash, once.Fingerprint, onceLifetime.Milliseconds(), requestID(ctx), cell))
	held.settle(err, once.claim.before)
	return err
}

// claimPlace is where an organization's claim on an idempotency key is kept.
func (s *Store) claimPlace(organization uuid.UUID, once *Idempotency) string {
	return s.keys.outcome(organization, digest("claim", string(organization[:]), once.Key))
}

// released returns err. When it says that nothing came of an organization's request, it releases the claim on the
// idempotency key first, if it can, so that the corrected request may have the same key.
func (s *Store) released(ctx context.Context, c Caller, once *Idempotency, err error) error {
	if once == nil || once.forgotten || c.Key == nil || !once.cameToNothing(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if once.claim.before && s.mayHaveOutcome(ctx, c, once, cellOf(once.at)) { // of which only the object is gone
		return err
	}
	_, failed := s.client.Run(ctx, s.proven.of(c), releaseClaim, []string{s.claimPlace(c.Key.Organization, once)}, once.Fingerprint)
	if failed == nil && once.claim.mine {
		s.noteReleased(c.Key.Organization)
	}
	return err
}

// cameToNothing says whether a refusal leaves the idempotency key unused. What a quota or a rate has refused to this request
// may be under way for one that claimed the key before.
func (o *Idempotency) cameToNothing(err error) bool {
	return isNoOutcome(err) || isRefusedCreation(err) && o.claim.mine
}

// isNoOutcome says whether a refusal is of what the request names; see idempotent.lua.
func isNoOutcome(err error) bool {
	var scope *ScopeError
	var above *AboveBoundsError
	return errors.Is(err, ErrUnknownAgent) || errors.Is(err, ErrUnknownSession) || errors.Is(err, ErrUnknownTransaction) ||
		errors.Is(err, ErrTokenLacksScope) || errors.As(err, &scope) || errors.As(err, &above)
}

// releaseAbandoned releases another request's claim if nothing came of it and nothing will: the instance that served it
// ended between the claim and the operation.
func (s *Store) releaseAbandoned(ctx context.Context, c Caller, once *Idempotency) bool {
	f, place := s.proven.of(c), s.claimPlace(c.Key.Organization, once)
	value, err := s.client.Call(ctx, f, reads, "get", place)
	text, _ := value.(string)
	fingerprint, cell, isClaim := readClaim(text)
	if err != nil || !isClaim {
		return false
	}
	left, err := s.client.Call(ctx, f, reads, "pttl", place)
	if ms, ok := left.(int64); err != nil || !ok || onceLifetime-time.Duration(ms)*time.Millisecond < abandonedAfter {
		return false
	}
	if s.mayHaveOutcome(ctx, c, once, cell) {
		return false
	}
	_, err = s.client.Run(ctx, f, releaseClaim, []string{place}, fingerprint)
	return err == nil
}

// mayHaveOutcome says whether an outcome of the organization's idempotency key is kept in the cell, or that is unknown.
func (s *Store) mayHaveOutcome(ctx context.Context, c Caller, once *Idempotency, cell uint16) bool {
	act := actor{organization: c.Key.Organization}
	count, err := s.client.Call(ctx, s.proven.of(c), reads, "exists", s.keys.outcomeIn(cell, act.keyDigest(once, "")))
	return err != nil || count != int64(0)
}

// readClaim reads what claim_key.lua keeps. It returns false for what has no cell: a batch, a claim by an earlier version,
// or no claim but an outcome.
func readClaim(kept string) (fingerprint [32]byte, cell uint16, ok bool) {
	if len(kept) < len(fingerprint) {
		return fingerprint, 0, false
	}
	parts := strings.Split(kept[copy(fingerprint[:], kept):], " ")
	if len(parts) != 3 {
		return fingerprint, 0, false
	}
	bytes, err := hex.DecodeString(parts[1])
	if err != nil || len(bytes) != cellBytes {
		return fingerprint, 0, false
	}
	return fingerprint, uint16(bytes[0])<<8 | uint16(bytes[1]), true
}
