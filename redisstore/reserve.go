package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// reserveByKey is reserve for an API key. Until the key was found valid, nothing is reserved for its organization: the
// operation checks the key, and the account follows from its success.
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

// closePause is how often open sessions are checked because they seem too many, and closeSample how many.
const (
	closePause  = time.Second
	closeSample = 256
)

func (a *account) mayTidy(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.tidied) < closePause {
		return false
	}
	a.tidied = now
	return true
}

// closeSome moves open sessions that are over to the closed ones, when there are too many and it has not checked for a while; it
// returns whether it has. It also reads the quota again, which may have been raised.
func (s *Store) closeSome(ctx context.Context, organization uuid.UUID) bool {
	a := s.usage.account(organization)
	s.usage.syncing.want(a)
	if !a.mayTidy(s.usage.now()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	prune(ctx, s, s.openSessions(organization), closeSample)
	return true
}

// isKept reports whether an outcome or a claim is stored at the key. A repeated request takes no more memory, and gets the
// first response.
func (s *Store) isKept(ctx context.Context, f flow, key string) bool {
	found, err := s.client.Call(ctx, f, reads, "exists", key)
	return err == nil && found == int64(1)
}

// reserveUnlessKept is reserve for an idempotency key whose outcome would stand at the place.
func (s *Store) reserveUnlessKept(ctx context.Context, f flow, d demand, place string) (reservation, error) {
	held, err := s.reserveIn(f, d)
	if isRefusedCreation(err) && s.isKept(ctx, f, place) {
		return reservation{}, nil
	}
	return held, s.refusals.count(err)
}

// reserveKey reserves the idempotency key of an operation on an agent. For an API key the claim was counted before.
func (s *Store) reserveKey(ctx context.Context, act actor, idem *Idempotency, outcome string) (reservation, error) {
	d := keyDemand(act, idem, keySize)
	if act.family == "" {
		d.resource, d.always = noResource, true
	}
	return s.reserveUnlessKept(ctx, act.flow, d, outcome)
}

// reserveClaim reserves an idempotency key by its claim.
func (s *Store) reserveClaim(ctx context.Context, act actor, idem *Idempotency, place string) (reservation, error) {
	return s.reserveUnlessKept(ctx, act.flow, keyDemand(act, idem, claimSize), place)
}

// noteOutcomes counts the memory of so many outcomes whose idempotency key was counted by its claim.
func (s *Store) noteOutcomes(organization uuid.UUID, kept int64) {
	s.usage.note(organization, func(c *changes, settled *quantities) {
		c.expire(expiryOf('b', outcomeLifetime, outcomeLifetime), kept*keySize)
		settled[bytesHeld] += kept * keySize
	})
}

// noteReleased counts that a claim is gone.
func (s *Store) noteReleased(organization uuid.UUID) {
	s.usage.note(organization, func(c *changes, settled *quantities) {
		c.expire(expiryOf('i', outcomeLifetime, outcomeLifetime), -1)
		c.expire(expiryOf('b', outcomeLifetime, outcomeLifetime), -claimSize)
		settled[keysHeld]--
		settled[bytesHeld] -= claimSize
	})
}

// reserveTransaction reserves a transaction.
func (s *Store) reserveTransaction(ctx context.Context, t AccessToken, n NewTransaction) (reservation, error) {
	d, act := s.transactionDemand(t, n), t.actor()
	if n.Idempotency == nil {
		held, err := s.reserveIn(act.flow, d)
		return held, s.refusals.count(err)
	}
	n.Idempotency.bounded = true
	return s.reserveUnlessKept(ctx, act.flow, d, s.keys.outcome(act.agent, act.keyDigest(n.Idempotency, "")))
}

// settled counts that a transaction is no longer pending, and what its settlement stores.
func (s *Store) settled(act actor, idem *Idempotency, postState string) func(Transaction, error) (Transaction, error) {
	return func(t Transaction, err error) (Transaction, error) {
		if err != nil || idem != nil && idem.Replayed {
			return t, err
		}
		wasPending := t.Committed.IsZero() || t.RolledBack.IsZero()
		at := t.Committed
		if t.RolledBack.After(at) {
			at = t.RolledBack
		}
		s.usage.note(act.organization, func(c *changes, settled *quantities) {
			c.eventBytes += eventSize
			if remaining := t.Expires.Sub(at); wasPending && remaining > 0 {
				c.expire(pendingUntil(t.Expires.Sub(t.Created), t.Expires), -1)
				settled[pendingHeld]--
			}
			if postState != "" {
				bytes := texts(0, postState)
				retention := s.config.Retention
				c.expire(expiryOf('b', retention, retention), bytes)
				settled[bytesHeld] += bytes
			}
		})
		return t, nil
	}
}

// noteEvent counts an event of an agent of the organization.
func (u *usage) noteEvent(organization uuid.UUID) {
	u.note(organization, func(c *changes, _ *quantities) { c.eventBytes += eventSize })
}
