package redisstore

import (
	"context"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// A creation by API key writes to two cells. One script in the organization's cell writes the index entry and the claim on
// the idempotency key. Another in the agent's cell then writes the object. So every object has an index entry. A crash or a
// lost reply between them leaves an entry without an object, which readers drop, and a claim without an outcome, with
// which the same request starts again.

// creation is the creation of an object by API key.
type creation struct {
	key         APIKey
	id          uuid.UUID
	index       string          // the organization's index that lists it
	enter       *script         // enters it in the index
	claim       *script         // enters it, and ties the idempotency key to it
	counted     kernel.Resource // its quota bounds the index
	makeRoom    func() bool     // tries to remove inactive entries from the index; nil for an index that has none
	idempotency *Idempotency    // nil for no idempotency key
	outcome     string          // the Redis key of its outcome
	entered     bool            // true once it may be in the index
	root        *rootSession    // for a session; nil for what no budget concerns
}

// rootSession is what the scripts that index a session take about its organization's budget.
type rootSession struct {
	agent   uuid.UUID
	value   string    // micro-USD to reserve, "" for a session with a parent
	outcome uuid.UUID // in whose cell the outcome of an idempotency key will be

	reserved string // when a budget reserved the value, as scripts take it; "" for no budget
}

// budgetKeys are the further keys of these scripts.
func (s *Store) budgetKeys(c *creation) []string {
	if c.root == nil {
		return nil
	}
	o := c.key.Organization
	return []string{s.keys.OrganizationBudget(o), s.keys.Reservations(o), s.keys.ReservationLooks(o), s.keys.Events(o)}
}

// rootArguments are the further arguments of these scripts.
func (s *Store) rootArguments(ctx context.Context, c *creation) []any {
	if c.root == nil {
		return nil
	}
	return []any{c.root.value, c.root.agent, s.core.AuditAs(ctx, kernel.ActorKey)}
}

// take reads from their reply whether a budget reserved the value.
func (r *rootSession) take(reply *reply, i int) error {
	if r == nil {
		return nil
	}
	r.reserved = reply.Text(i)
	return reply.Err
}

// reserveCreation reserves what a creation takes, and enters the object in its organization's index before it exists. A
// repeated request creates nothing, so it is subject to no quota and writes nothing. Errors: ErrInvalidAPIKey,
// ErrIdempotencyKeyReused, *QuotaError, *RateError; of a root session *BudgetError.
func (s *Store) reserveCreation(ctx context.Context, c *creation, d kernel.Demand) (kernel.Reservation, error) {
	claim, err := s.reserveCreationKey(ctx, c)
	if err != nil {
		return kernel.Reservation{}, err
	}
	held, err := s.core.ReserveIn(s.core.Proven.Flow(c.key), d)
	if err != nil {
		err = s.repeatBeyond(ctx, c, err)
	} else {
		err = s.enterWithin(ctx, c, func(quota string) error { return s.claimAndEnter(ctx, c, quota) })
	}
	if c.idempotency != nil {
		claim.Finish(err, c.idempotency.Outcome.Claim.Before)
	}
	if err != nil {
		held.Finish(err, false)
		return kernel.Reservation{}, kernel.NothingVisible(s.core.Refusals.Count(err))
	}
	return held, nil
}

func (s *Store) reserveCreationKey(ctx context.Context, c *creation) (kernel.Reservation, error) {
	if c.idempotency == nil {
		return kernel.Reservation{}, nil
	}
	organization := c.key.Organization
	return s.core.ReserveClaim(ctx, kernel.Actor{Organization: organization, Flow: s.core.Proven.Flow(c.key)}, c.idempotency,
		s.core.ClaimPlace(organization, c.idempotency))
}

// repeatBeyond handles a creation beyond the quota. It returns nil if the creation repeats a request that has an outcome,
// else the refusal.
func (s *Store) repeatBeyond(ctx context.Context, c *creation, refusal error) error {
	if c.idempotency == nil {
		return refusal
	}
	err := s.claimAndEnter(ctx, c, "0") // a quota of 0 enters nothing
	if err != nil && !kernel.IsRefusedCreation(err) {
		return err
	}
	if !s.core.IsStored(ctx, s.core.Proven.Flow(c.key), c.outcome) {
		return refusal
	}
	if err != nil { // the claim expired shortly before the outcome
		return s.claimAndEnter(ctx, c, "")
	}
	return nil
}

// enterWithin enters the object within the quota of its index. At the quota it enters a repeated request all the same, and
// a new one if it can make room.
func (s *Store) enterWithin(ctx context.Context, c *creation, enter func(quota string) error) error {
	organization := c.key.Organization
	err := enter(s.core.Usage.Quota(organization, c.counted))
	if kernel.IsBudgetExhausted(err) && s.settleBelow(ctx, organization, place{}) {
		err = enter(s.core.Usage.Quota(organization, c.counted))
	}
	switch {
	case !kernel.IsRefusedCreation(err):
		return err
	case c.idempotency != nil && s.core.IsStored(ctx, s.core.Proven.Flow(c.key), c.outcome):
		return enter("")
	case c.makeRoom != nil && c.makeRoom():
		return enter(s.core.Usage.Quota(organization, c.counted))
	default:
		return err
	}
}

// claimAndEnter enters the object in its index, and ties the idempotency key to it if there is one. It writes nothing if an
// earlier request has the key.
func (s *Store) claimAndEnter(ctx context.Context, c *creation, quota string) error {
	if c.idempotency == nil {
		return s.enter(ctx, c, quota)
	}
	err := s.claimWithEntry(ctx, c, quota)
	if err == ErrIdempotencyKeyReused && s.core.ReleaseAbandoned(ctx, Caller{Key: &c.key}, c.idempotency) {
		err = s.claimWithEntry(ctx, c, quota)
	}
	return err
}

func (s *Store) claimWithEntry(ctx context.Context, c *creation, quota string) error {
	organization, idem := c.key.Organization, c.idempotency
	keys := append([]string{s.keys.Organization(organization), s.core.ClaimPlace(organization, idem), c.index}, s.budgetKeys(c)...)
	args := append([]any{c.key.Credential(), idem.Fingerprint, kernel.OutcomeLifetime.Milliseconds(), kernel.RequestID(ctx), c.id, quota},
		s.rootArguments(ctx, c)...)
	if c.root != nil {
		args = append(args, c.root.outcome)
	}
	r, err := s.core.RunByKey(ctx, c.key, s.core.Proven.Flow(c.key), c.claim, keys, args...)
	err = idem.Claimed(r, err)
	if c.entered = err == nil && idem.Outcome.Claim.Mine; c.entered {
		err = c.root.take(r, 2)
	}
	return err
}

func (s *Store) enter(ctx context.Context, c *creation, quota string) error {
	keys := append([]string{s.keys.Organization(c.key.Organization), c.index}, s.budgetKeys(c)...)
	args := append([]any{c.key.Credential(), c.id, quota}, s.rootArguments(ctx, c)...)
	r, err := s.core.RunByKey(ctx, c.key, s.core.Proven.Flow(c.key), c.enter, keys, args...)
	if c.entered = err == nil; c.entered {
		err = c.root.take(r, 0)
	}
	return kernel.NothingVisible(err)
}

// create runs the creation's script, or returns the outcome of the earlier request with this idempotency key. A script that
// cannot create anything reads that outcome, because the object is not in its index yet. Only if there is no outcome, create
// enters the object and creates it.
func (s *Store) create(ctx context.Context, c *creation, createObject, replay kernel.KeyedScript,
	perform func(kernel.KeyedScript) (*reply, error)) (*reply, error) {
	if c.entered {
		return perform(createObject)
	}
	r, err := perform(replay)
	if err != kernel.ErrNoOutcome {
		return r, err
	}
	err = s.enterWithin(ctx, c, func(quota string) error { return s.enter(ctx, c, quota) })
	if err != nil {
		return nil, s.core.Refusals.Count(err)
	}
	return perform(createObject)
}

func (s *Store) sessionDemand(n NewSession, organization [16]byte) kernel.Demand {
	d := kernel.Demand{
		Organization: organization, Resource: kernel.NoResource, Events: kernel.EventSize,
		Bytes: kernel.SessionSize + kernel.Texts(kernel.TableSize, n.Metadata, n.scopesText()), Retained: n.Lifetime + s.config.Retention,
	}
	if n.Parent != uuid.Nil {
		d.Bytes += kernel.ChildSize
		d.Events += 2 * kernel.EventSize // of its parent's agent: what it was given, and what it has used
	}
	return d
}

func agentDemand(organization [16]byte, a Agent, scopes string) kernel.Demand {
	text := kernel.Texts(kernel.TableSize, a.Name, a.Description, a.Metadata, scopes, audiencesText(a.Audiences), a.JWKS, a.JWKSURI)
	return kernel.Demand{Organization: organization, Resource: kernel.NoResource, Bytes: kernel.AgentSize + text, Text: text}
}
