package kernel

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// An organization may use an idempotency key for any of its agents, and the agent's cell stores the outcome. So a claim in
// the organization's own cell first ties the key to one request.

var (
	ClaimKey      = NewScript("kernel/claim_key", redisclient.Writes)
	ClaimAgentKey = NewScript("kernel/claim_agent_key", redisclient.Writes)
	releaseClaim  = NewScript("kernel/release_claim", redisclient.BestEffort)
)

// AbandonedAfter is the age at which a claim without an outcome no longer belongs to a running request. It is many times
// the longest time of a request.
const AbandonedAfter = time.Minute

// claim says which request claimed an idempotency key: an earlier one (before) or this one (mine). Both are false until then.
type claim struct {
	Request      string
	Before, Mine bool
}

// Claimed reads from the reply of a claiming script which request has the key.
func (o *Idempotency) Claimed(r *redisclient.Reply, err error) error {
	if err != nil {
		return NothingVisible(err)
	}
	before := r.Text(1) != ""
	o.Outcome.Claim = claim{r.Text(0), before, !before}
	return r.Err
}

// Authorize returns nil if the caller's API key is valid, and ties the idempotency key to this request unless idem is nil.
// Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrIdempotencyKeyReused, *QuotaError, *RateError.
func (s *Core) Authorize(ctx context.Context, c Caller, idem *Idempotency) error {
	if idem == nil {
		_, err := s.Authenticate(ctx, s.Proven.Of(c), *c.Key)
		return err
	}
	err := s.claim(ctx, c, idem)
	if err == ErrIdempotencyKeyReused && s.ReleaseAbandoned(ctx, c, idem) {
		err = s.claim(ctx, c, idem)
	}
	if idem.forget(err) {
		return s.Authorize(ctx, c, nil)
	}
	return err
}

func (s *Core) claim(ctx context.Context, c Caller, idem *Idempotency) error {
	key, cell := *c.Key, ""
	if idem.At != uuid.Nil {
		cell = cellText(CellOf(idem.At))
	}
	f, place := s.Proven.Of(c), s.ClaimPlace(key.Organization, idem)
	held, err := s.ReserveClaim(ctx, Actor{Organization: key.Organization, Flow: f}, idem, place)
	if err != nil {
		return err
	}
	err = idem.Claimed(s.RunByKey(ctx, key, f, ClaimKey, []string{s.Keys.Organization(key.Organization), place},
		key.Credential(), idem.Fingerprint, OutcomeLifetime.Milliseconds(), RequestID(ctx), cell))
	held.Finish(err, idem.Outcome.Claim.Before)
	return err
}

// ClaimPlace is the Redis key of an organization's claim on an idempotency key.
func (s *Core) ClaimPlace(organization uuid.UUID, idem *Idempotency) string {
	return s.Keys.Outcome(organization, Digest("claim", string(organization[:]), idem.Key))
}

// FreeClaim deletes the organization's claim on the idempotency key of an operation that ended with err, if err is no outcome:
// the corrected request may use the same key. Its own failure is ignored.
func (s *Core) FreeClaim(ctx context.Context, c Caller, idem *Idempotency, err error) {
	if idem == nil || idem.Outcome.Forgotten || c.Key == nil || !idem.leavesKeyUnused(err) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisclient.CallTimeout)
	defer cancel()
	if idem.Outcome.Claim.Before && s.mayHaveOutcome(ctx, c, idem, CellOf(idem.At)) { // only the object is gone
		return
	}
	_, failed := s.Client.Run(ctx, s.Proven.Of(c), releaseClaim, []string{s.ClaimPlace(c.Key.Organization, idem)}, idem.Fingerprint)
	if failed == nil && idem.Outcome.Claim.Mine {
		s.noteReleased(c.Key.Organization)
	}
}

// leavesKeyUnused says whether a refusal leaves the idempotency key unused. A quota or a rate may refuse this request while
// an earlier request with the same key is in progress.
func (o *Idempotency) leavesKeyUnused(err error) bool {
	return IsNoOutcome(err) || IsRefusedCreation(err) && o.Outcome.Claim.Mine
}

// ReleaseAbandoned releases another request's claim if that request has no outcome and never will have one: the instance
// that served it ended between the claim and the operation.
func (s *Core) ReleaseAbandoned(ctx context.Context, c Caller, idem *Idempotency) bool {
	f, place := s.Proven.Of(c), s.ClaimPlace(c.Key.Organization, idem)
	value, err := s.Client.Call(ctx, f, redisclient.Reads, "get", place)
	text, _ := value.(string)
	abandoned, isClaim := readClaim(text)
	if err != nil || !isClaim {
		return false
	}
	left, err := s.Client.Call(ctx, f, redisclient.Reads, "pttl", place)
	if ms, ok := left.(int64); err != nil || !ok || OutcomeLifetime-time.Duration(ms)*time.Millisecond < AbandonedAfter {
		return false
	}
	if s.mayHaveOutcome(ctx, c, idem, abandoned.cell) {
		return false
	}
	_, err = s.Client.Run(ctx, f, releaseClaim, []string{place}, abandoned.fingerprint)
	return err == nil
}

// mayHaveOutcome returns false if the cell certainly stores no outcome of the organization's idempotency key.
func (s *Core) mayHaveOutcome(ctx context.Context, c Caller, idem *Idempotency, cell uint16) bool {
	act := Actor{Organization: c.Key.Organization}
	count, err := s.Client.Call(ctx, s.Proven.Of(c), redisclient.Reads, "exists", s.Keys.outcomeIn(cell, act.KeyDigest(idem, "")))
	return err != nil || count != int64(0)
}

// Scripts encode what Redis stores for an idempotency key: lua/kernel/include/outcomes.lua an outcome or an agent's claim,
// lua/include/claims.lua an organization's claim. Only this file decodes it in Go; replies contain decoded outcomes.

// storedClaim is an organization's claim on an idempotency key.
type storedClaim struct {
	fingerprint [32]byte // of the request that has the key
	cell        uint16   // of its outcome
}

// readClaim reads an organization's claim: fingerprint, request id, cell and organization. It returns false for a text
// without a single cell: the claim of a batch, an outcome.
func readClaim(stored string) (storedClaim, bool) {
	var c storedClaim
	if len(stored) < len(c.fingerprint) {
		return c, false
	}
	parts := strings.Split(stored[copy(c.fingerprint[:], stored):], " ")
	if len(parts) != 3 {
		return c, false
	}
	var valid bool
	c.cell, valid = parseCell(parts[1])
	return c, valid
}

// StoredEnd is how many bytes at the end of an outcome or a claim name its organization.
const StoredEnd = len("00000000-0000-0000-0000-000000000000")

// BelongsTo says whether an outcome or a claim with this end is the organization's. An outcome ends with the 16 bytes of its
// id, a claim with its id as text.
func BelongsTo(end string, organization uuid.UUID) bool {
	return strings.HasSuffix(end, string(organization[:])) || end == organization.String()
}
