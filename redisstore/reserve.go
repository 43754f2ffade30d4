package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// reserveByKey is reserve for an API key. Until the key is verified, it reserves nothing in the organization's account: the
// operation checks the key, and its success adds the demand to the account.
func (s *Store) reserveByKey(key APIKey, d demand) (reservation, error) {
	return s.reserveIn(s.proven.flow(key), d)
}

func (s *Store) reserveIn(f flow, d demand) (reservation, error) {
	if f.Kind == unproven {
		d.always = true
		return reservation{u: s.usage, demand: d}, nil // a forged credential may name any organization
	}
	return s.usage.reserve(d)
}

// At the quota of open sessions, closeSome checks closeSample of them, at most every closePause.
const (
	closePause  = time.Second
	closeSample = 256
)

func (a *account) mayPrune(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.prunedAt) < closePause {
		return false
	}
	a.prunedAt = now
	return true
}

// closeSome moves inactive sessions from the open to the closed ones, and returns whether it did. It does nothing within
// closePause of the last time. It also has the account synced, because the quota may have been raised.
func (s *Store) closeSome(ctx context.Context, organization uuid.UUID) bool {
	a := s.usage.account(organization)
	s.usage.syncing.enqueue(a)
	if !a.mayPrune(s.usage.now()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	prune(ctx, s, s.openSessions(organization), closeSample)
	return true
}

// isStored says whether Redis has the key of an outcome or a claim. Then the request is a repetition: it takes no more
// memory, and returns the first outcome.
func (s *Store) isStored(ctx context.Context, f flow, key string) bool {
	found, err := s.client.Call(ctx, f, reads, "exists", key)
	return err == nil && found == int64(1)
}

// reserveUnlessStored is reserve for an idempotency key whose outcome or claim has this Redis key. It does not refuse a
// repetition.
func (s *Store) reserveUnlessStored(ctx context.Context, f flow, d demand, place string) (reservation, error) {
	held, err := s.reserveIn(f, d)
	if isRefusedCreation(err) && s.isStored(ctx, f, place) {
		return reservation{}, nil
	}
	return held, s.refusals.count(err)
}

// reserveKey reserves the idempotency key of an operation on an agent. For an API key it reserves only the outcome's memory,
// because the claim has counted the key already.
func (s *Store) reserveKey(ctx context.Context, act actor, idem *Idempotency, outcome string) (reservation, error) {
	d := keyDemand(act, idem, keySize)
	if act.family == "" {
		d.resource, d.always = noResource, true
	}
	return s.reserveUnlessStored(ctx, act.flow, d, outcome)
}

// reserveClaim reserves an idempotency key and the memory of its claim.
func (s *Store) reserveClaim(ctx context.Context, act actor, idem *Idempotency, place string) (reservation, error) {
	return s.reserveUnlessStored(ctx, act.flow, keyDemand(act, idem, claimSize), place)
}

// reserveSealed reserves the idempotency key of an operation by API key, and the bytes that its script counts. It returns the
// Redis key of the outcome. idem may be nil.
func (s *Store) reserveSealed(ctx context.Context, key APIKey, f flow, idem *Idempotency, counted int64) (place string, held reservation, err error) {
	if idem == nil {
		held, err = s.reserveCounted(f, key.Organization, counted)
		return "", held, err
	}
	idem.bounded = true
	place = s.claimPlace(key.Organization, idem)
	d := keyDemand(actor{organization: key.Organization, flow: f}, idem, claimSize)
	d.counted = counted
	held, err = s.reserveUnlessStored(ctx, f, d, place)
	return place, held, err
}

// reserveCounted reserves bytes that an operation's script counts. It does not refuse an operation that adds none.
func (s *Store) reserveCounted(f flow, organization uuid.UUID, counted int64) (reservation, error) {
	held, err := s.reserveIn(f, demand{
		organization: organization, resource: noResource, counted: counted, always: counted <= 0, unpaced: true,
	})
	return held, s.refusals.count(err)
}

// noteFreed has the organization's usage read again after a script that frees what scripts count, unless it failed.
func (s *Store) noteFreed(organization uuid.UUID, err error) {
	if err == nil || errors.Is(err, ErrOutcomeUnknown) {
		s.usage.syncing.enqueue(s.usage.account(organization))
	}
}

// noteOutcomes counts the memory of outcomes whose idempotency key the claim has counted.
func (s *Store) noteOutcomes(organization uuid.UUID, kept int64) {
	s.usage.note(organization, func(c *changes, unsent *quantities) {
		c.expire(expiryOf('b', outcomeLifetime, outcomeLifetime), kept*keySize)
		unsent[bytesHeld] += kept * keySize
	})
}

// noteReleased counts that a claim was deleted.
func (s *Store) noteReleased(organization uuid.UUID) {
	s.usage.note(organization, func(c *changes, unsent *quantities) {
		c.expire(expiryOf('i', outcomeLifetime, outcomeLifetime), -1)
		c.expire(expiryOf('b', outcomeLifetime, outcomeLifetime), -claimSize)
		unsent[keysHeld]--
		unsent[bytesHeld] -= claimSize
	})
}

// reserveTransaction reserves a transaction, with its idempotency key if it has one.
func (s *Store) reserveTransaction(ctx context.Context, t AccessToken, n NewTransaction) (reservation, error) {
	d, act := s.transactionDemand(t, n), t.actor()
	if n.Idempotency == nil {
		held, err := s.reserveIn(act.flow, d)
		return held, s.refusals.count(err)
	}
	n.Idempotency.bounded = true
	return s.reserveUnlessStored(ctx, act.flow, d, s.keys.outcome(act.agent, act.keyDigest(n.Idempotency, "")))
}

// countSettlement counts that a transaction is no longer pending, and the memory of its post-state.
func (s *Store) countSettlement(act actor, idem *Idempotency, postState string) func(Transaction, error) (Transaction, error) {
	return func(t Transaction, err error) (Transaction, error) {
		if err != nil || idem != nil && idem.Replayed {
			return t, err
		}
		wasPending := t.Committed.IsZero() || t.RolledBack.IsZero()
		at := t.Committed
		if t.RolledBack.After(at) {
			at = t.RolledBack
		}
		s.usage.note(act.organization, func(c *changes, unsent *quantities) {
			c.eventBytes += eventSize
			if remaining := t.Expires.Sub(at); wasPending && remaining > 0 {
				c.expire(pendingUntil(t.Expires.Sub(t.Created), t.Expires), -1)
				unsent[pendingHeld]--
			}
			if postState != "" {
				bytes := texts(0, postState)
				retention := s.config.Retention
				c.expire(expiryOf('b', retention, retention), bytes)
				unsent[bytesHeld] += bytes
			}
		})
		return t, nil
	}
}

// noteEvent counts an event of an agent of the organization.
func (u *usage) noteEvent(organization uuid.UUID) {
	u.note(organization, func(c *changes, _ *quantities) { c.eventBytes += eventSize })
}
