package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// ReserveIn reserves a demand of a caller with this flow. Until the caller's credential is verified, it reserves nothing in the organization's
// account: the operation checks the credential, and its success adds the demand to the account.
func (s *Core) ReserveIn(f redisclient.Flow, d Demand) (Reservation, error) {
	if f.Kind == unproven {
		d.Always = true
		return Reservation{Usage: s.Usage, Demand: d}, nil // a forged credential may name any organization
	}
	return s.Usage.Reserve(d)
}

// closePause is the least time between two prunings of an organization's open sessions at their quota.
const closePause = time.Second

// MayPrune says whether an organization's open sessions may be pruned now, and notes that they are. It also has its account
// synced, because the quota may have been raised.
func (u *usage) MayPrune(organization uuid.UUID) bool {
	a, now := u.Account(organization), u.Now()
	u.Syncing.enqueue(a)
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if now.Sub(a.prunedAt) < closePause {
		return false
	}
	a.prunedAt = now
	return true
}

// IsStored says whether Redis has the key of an outcome or a claim. Then the request is a repetition: it takes no more
// memory, and returns the first outcome.
func (s *Core) IsStored(ctx context.Context, f redisclient.Flow, key string) bool {
	found, err := s.Client.Call(ctx, f, redisclient.Reads, "exists", key)
	return err == nil && found == int64(1)
}

// ReserveUnlessStored is reserve for an idempotency key whose outcome or claim has this Redis key. It does not refuse a
// repetition.
func (s *Core) ReserveUnlessStored(ctx context.Context, f redisclient.Flow, d Demand, place string) (Reservation, error) {
	held, err := s.ReserveIn(f, d)
	if IsRefusedCreation(err) && s.IsStored(ctx, f, place) {
		return Reservation{}, nil
	}
	return held, s.Refusals.Count(err)
}

// ReserveFor reserves what an operation is about to create in the agent's cell, with an idempotency key unless idem is nil. It does not
// refuse a repetition.
func (s *Core) ReserveFor(ctx context.Context, act Actor, d Demand, idem *Idempotency) (Reservation, error) {
	if idem == nil {
		held, err := s.ReserveIn(act.Flow, d)
		return held, s.Refusals.Count(err)
	}
	idem.Bounded = true
	return s.ReserveUnlessStored(ctx, act.Flow, d, s.Keys.Outcome(act.Agent, act.KeyDigest(idem, "")))
}

// reserveKey reserves the idempotency key of an operation on an agent. For an API key it reserves only the outcome's memory,
// because the claim has counted the key already.
func (s *Core) reserveKey(ctx context.Context, act Actor, idem *Idempotency, outcome string) (Reservation, error) {
	d := keyDemand(act, idem, keySize)
	if act.Family == "" {
		d.Resource, d.Always = NoResource, true
	}
	return s.ReserveUnlessStored(ctx, act.Flow, d, outcome)
}

// ReserveClaim reserves an idempotency key and the memory of its claim.
func (s *Core) ReserveClaim(ctx context.Context, act Actor, idem *Idempotency, place string) (Reservation, error) {
	return s.ReserveUnlessStored(ctx, act.Flow, keyDemand(act, idem, claimSize), place)
}

// ReserveSealed reserves the idempotency key of an operation by API key, and the bytes that its script counts. It returns the
// Redis key of the outcome. idem may be nil.
func (s *Core) ReserveSealed(ctx context.Context, key APIKey, f redisclient.Flow, idem *Idempotency, counted int64) (place string, held Reservation, err error) {
	if idem == nil {
		held, err = s.reserveCounted(f, key.Organization, counted)
		return "", held, err
	}
	idem.Bounded = true
	place = s.ClaimPlace(key.Organization, idem)
	d := keyDemand(Actor{Organization: key.Organization, Flow: f}, idem, claimSize)
	d.counted = counted
	held, err = s.ReserveUnlessStored(ctx, f, d, place)
	return place, held, err
}

// reserveCounted reserves bytes that an operation's script counts. It does not refuse an operation that adds none.
func (s *Core) reserveCounted(f redisclient.Flow, organization uuid.UUID, counted int64) (Reservation, error) {
	held, err := s.ReserveIn(f, Demand{
		Organization: organization, Resource: NoResource, counted: counted, Always: counted <= 0, Unpaced: true,
	})
	return held, s.Refusals.Count(err)
}

// NoteFreed has the organization's usage read again after a script that frees what scripts count, unless it failed.
func (s *Core) NoteFreed(organization uuid.UUID, err error) {
	if err == nil || errors.Is(err, redisclient.ErrOutcomeUnknown) {
		s.Usage.Syncing.enqueue(s.Usage.Account(organization))
	}
}

// NoteOutcomes counts the memory of outcomes whose idempotency key the claim has counted.
func (s *Core) NoteOutcomes(organization uuid.UUID, kept int64) {
	s.Usage.NoteBytes(organization, kept*keySize, OutcomeLifetime)
}

// noteReleased counts that a claim was deleted.
func (s *Core) noteReleased(organization uuid.UUID) {
	s.Usage.Note(organization, func(c *Changes, unsent *Quantities) {
		c.Expire(ExpiryOf('i', OutcomeLifetime, OutcomeLifetime), -1)
		unsent[keysHeld]--
	})
	s.Usage.NoteBytes(organization, -claimSize, OutcomeLifetime)
}

// NoteEvent counts an event of an agent of the organization.
func (u *usage) NoteEvent(organization uuid.UUID) { u.NoteEvents(organization, 1) }

// NoteEvents counts so many.
func (u *usage) NoteEvents(organization uuid.UUID, count int64) {
	u.Note(organization, func(c *Changes, _ *Quantities) { c.EventBytes += count * EventSize })
}

// NoteBytes counts memory that is taken for so long; below 0 it is free again.
func (u *usage) NoteBytes(organization uuid.UUID, bytes int64, retained time.Duration) {
	if bytes == 0 {
		return
	}
	u.Note(organization, func(c *Changes, unsent *Quantities) {
		c.Expire(ExpiryOf('b', retained, retained), bytes)
		unsent[BytesHeld] += bytes
	})
}
