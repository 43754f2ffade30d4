package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// An organization may use an idempotency key for any of its agents, and the agent's cell stores the outcome. So a claim in
// the organization's own cell first ties the key to one request.

var (
	claimKey      = newScript("kernel/claim_key", writes)
	claimAgentKey = newScript("kernel/claim_agent_key", writes)
	releaseClaim  = newScript("kernel/release_claim", bestEffort)
)

// abandonedAfter is the age at which a claim without an outcome no longer belongs to a running request. It is many times
// the longest time of a request.
const abandonedAfter = time.Minute

// claim says which request claimed an idempotency key: an earlier one (before) or this one (mine). Both are false until then.
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

// authorize returns nil if the caller's API key is valid, and ties the idempotency key to this request unless idem is nil.
// Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrIdempotencyKeyReused, *QuotaError, *RateError.
func (s *Store) authorize(ctx context.Context, c Caller, idem *Idempotency) error {
	if idem == nil {
		_, err := s.authenticate(ctx, s.proven.of(c), *c.Key)
		return err
	}
	err := s.claim(ctx, c, idem)
	if err == ErrIdempotencyKeyReused && s.releaseAbandoned(ctx, c, idem) {
		err = s.claim(ctx, c, idem)
	}
	if idem.forget(err) {
		return s.authorize(ctx, c, nil)
	}
	return err
}

func (s *Store) claim(ctx context.Context, c Caller, idem *Idempotency) error {
	key, cell := *c.Key, ""
	if idem.at != uuid.Nil {
		cell = cellText(cellOf(idem.at))
	}
	f, place := s.proven.of(c), s.claimPlace(key.Organization, idem)
	held, err := s.reserveClaim(ctx, actor{organization: key.Organization, flow: f}, idem, place)
	if err != nil {
		return err
	}
	err = idem.claimed(s.runByKey(ctx, key, f, claimKey, []string{s.keys.organization(key.Organization), place},
		key.credential(), idem.Fingerprint, outcomeLifetime.Milliseconds(), requestID(ctx), cell))
	held.finish(err, idem.claim.before)
	return err
}

// claimPlace is the Redis key of an organization's claim on an idempotency key.
func (s *Store) claimPlace(organization uuid.UUID, idem *Idempotency) string {
	return s.keys.outcome(organization, digest("claim", string(organization[:]), idem.Key))
}

// released returns err. If err is no outcome, it first tries to release the organization's claim on the idempotency key, so
// that the corrected request may use the same key.
func (s *Store) released(ctx context.Context, c Caller, idem *Idempotency, err error) error {
	if idem == nil || idem.forgotten || c.Key == nil || !idem.leavesKeyUnused(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if idem.claim.before && s.mayHaveOutcome(ctx, c, idem, cellOf(idem.at)) { // only the object is gone
		return err
	}
	_, failed := s.client.Run(ctx, s.proven.of(c), releaseClaim, []string{s.claimPlace(c.Key.Organization, idem)}, idem.Fingerprint)
	if failed == nil && idem.claim.mine {
		s.noteReleased(c.Key.Organization)
	}
	return err
}

// leavesKeyUnused says whether a refusal leaves the idempotency key unused. A quota or a rate may refuse this request while
// an earlier request with the same key is in progress.
func (o *Idempotency) leavesKeyUnused(err error) bool {
	return isNoOutcome(err) || isRefusedCreation(err) && o.claim.mine
}

// releaseAbandoned releases another request's claim if that request has no outcome and never will have one: the instance
// that served it ended between the claim and the operation.
func (s *Store) releaseAbandoned(ctx context.Context, c Caller, idem *Idempotency) bool {
	f, place := s.proven.of(c), s.claimPlace(c.Key.Organization, idem)
	value, err := s.client.Call(ctx, f, reads, "get", place)
	text, _ := value.(string)
	abandoned, isClaim := readClaim(text)
	if err != nil || !isClaim {
		return false
	}
	left, err := s.client.Call(ctx, f, reads, "pttl", place)
	if ms, ok := left.(int64); err != nil || !ok || outcomeLifetime-time.Duration(ms)*time.Millisecond < abandonedAfter {
		return false
	}
	if s.mayHaveOutcome(ctx, c, idem, abandoned.cell) {
		return false
	}
	_, err = s.client.Run(ctx, f, releaseClaim, []string{place}, abandoned.fingerprint)
	return err == nil
}

// mayHaveOutcome returns false if the cell certainly stores no outcome of the organization's idempotency key.
func (s *Store) mayHaveOutcome(ctx context.Context, c Caller, idem *Idempotency, cell uint16) bool {
	act := actor{organization: c.Key.Organization}
	count, err := s.client.Call(ctx, s.proven.of(c), reads, "exists", s.keys.outcomeIn(cell, act.keyDigest(idem, "")))
	return err != nil || count != int64(0)
}
