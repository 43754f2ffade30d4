package redisstore

import (
	"context"

	"github.com/google/uuid"
)

// A creation by API key goes to two cells. First to the organization's, with an entry of its index and the claim on the
// idempotency key, in one script. Then to the agent's, with the object. So an object never exists without an entry. A crash or a
// lost reply in between leaves an entry without an object, which readers drop, and a claim without an outcome, with which the
// same request starts again.

// creation is an object that is about to be created by API key.
type creation struct {
	key         APIKey
	id          uuid.UUID
	index       string       // the organization's index that lists it
	enter       *script      // enters it in the index
	claim       *script      // does that, and ties the idempotency key to it
	counted     resource     // whose quota bounds the index
	makeRoom    func() bool  // may drop entries of the index that are over; nil when none can be
	idempotency *Idempotency // nil for without an idempotency key
	outcome     string       // the key of its outcome
	entered     bool         // set once it may be in the index
}

// reserveCreation reserves what a creation takes, and enters the coming object in its organization's index. A repeated
// request creates nothing, so no quota refuses it, and nothing is written for it. Errors: ErrInvalidAPIKey, ErrKeyReused,
// *QuotaError, *RateError.
func (s *Store) reserveCreation(ctx context.Context, c *creation, d demand) (reservation, error) {
	claim, err := s.reserveCreationKey(ctx, c)
	if err != nil {
		return reservation{}, err
	}
	held, err := s.reserveByKey(c.key, d)
	if err != nil {
		err = s.repeatBeyond(ctx, c, err)
	} else {
		err = s.enterWithin(ctx, c, func(quota string) error { return s.claimAndEnter(ctx, c, quota) })
	}
	if c.idempotency != nil {
		claim.finish(err, c.idempotency.claim.before)
	}
	if err != nil {
		held.finish(err, false)
		return reservation{}, nothingVisible(s.refusals.count(err))
	}
	return held, nil
}

func (s *Store) reserveCreationKey(ctx context.Context, c *creation) (reservation, error) {
	if c.idempotency == nil {
		return reservation{}, nil
	}
	organization := c.key.Organization
	return s.reserveClaim(ctx, actor{organization: organization, flow: s.proven.flow(c.key)}, c.idempotency,
		s.claimPlace(organization, c.idempotency))
}

// repeatBeyond returns nil if the creation repeats a request that has an outcome, else the refusal, by which there is no room
// for another object.
func (s *Store) repeatBeyond(ctx context.Context, c *creation, refusal error) error {
	if c.idempotency == nil {
		return refusal
	}
	err := s.claimAndEnter(ctx, c, "0") // which enters nothing
	if err != nil && !isRefusedCreation(err) {
		return err
	}
	if !s.isStored(ctx, s.proven.flow(c.key), c.outcome) {
		return refusal
	}
	if err != nil { // its claim has expired shortly before its outcome
		return s.claimAndEnter(ctx, c, "")
	}
	return nil
}

// enterWithin enters the object within the quota of its index; when that is reached, a repeated request beyond it, and another
// one if room can be made.
func (s *Store) enterWithin(ctx context.Context, c *creation, enter func(quota string) error) error {
	organization := c.key.Organization
	err := enter(s.usage.quota(organization, c.counted))
	switch {
	case !isRefusedCreation(err):
		return err
	case c.idempotency != nil && s.isStored(ctx, s.proven.flow(c.key), c.outcome):
		return enter("")
	case c.makeRoom != nil && c.makeRoom():
		return enter(s.usage.quota(organization, c.counted))
	default:
		return err
	}
}

// claimAndEnter enters the object in its index, and ties the idempotency key to it if there is one. When a request before had
// the key, it writes nothing.
func (s *Store) claimAndEnter(ctx context.Context, c *creation, quota string) error {
	if c.idempotency == nil {
		return s.enter(ctx, c, quota)
	}
	err := s.claimWithEntry(ctx, c, quota)
	if err == ErrKeyReused && s.releaseAbandoned(ctx, Caller{Key: &c.key}, c.idempotency) {
		err = s.claimWithEntry(ctx, c, quota)
	}
	return err
}

func (s *Store) claimWithEntry(ctx context.Context, c *creation, quota string) error {
	organization, idem := c.key.Organization, c.idempotency
	keys := []string{s.keys.organization(organization), s.claimPlace(organization, idem), c.index}
	err := idem.claimed(s.runByKey(ctx, c.key, s.proven.flow(c.key), c.claim, keys,
		c.key.Hash, idem.Fingerprint, outcomeLifetime.Milliseconds(), requestID(ctx), c.id, quota))
	c.entered = err == nil && idem.claim.mine
	return err
}

func (s *Store) enter(ctx context.Context, c *creation, quota string) error {
	keys := []string{s.keys.organization(c.key.Organization), c.index}
	_, err := s.runByKey(ctx, c.key, s.proven.flow(c.key), c.enter, keys, c.key.Hash, c.id, quota)
	c.entered = err == nil
	return nothingVisible(err)
}

// create runs a creation's script, or returns the outcome of the request that had the idempotency key before. That outcome
// is read by a script that cannot create anything, because the object is not in its index; it enters that only when there is
// no outcome.
func (s *Store) create(ctx context.Context, c *creation, createObject, replay keyedScript,
	perform func(keyedScript) (*reply, error)) (*reply, error) {
	if c.entered {
		return perform(createObject)
	}
	r, err := perform(replay)
	if err != errNoOutcome {
		return r, err
	}
	err = s.enterWithin(ctx, c, func(quota string) error { return s.enter(ctx, c, quota) })
	if err != nil {
		return nil, s.refusals.count(err)
	}
	return perform(createObject)
}
