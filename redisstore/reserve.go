package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
)

// reserveByKey is reserve for an API key. While the key is not seen to be good, its organization is not asked: the operation
// checks the key, and the account comes with its success.
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

// reserveAgent reserves an agent, and notes it in the index of its organization. What repeats a request creates none.
func (s *Store) reserveAgent(ctx context.Context, key APIKey, a Agent, repeats func() bool) (reservation, error) {
	held, err := s.reserveByKey(key, agentDemand(key.Organization, a, strings.Join(a.Scopes, " ")))
	if isRefusedCreation(err) && repeats() {
		held, err = reservation{}, nil
	}
	if err != nil {
		return reservation{}, s.refusals.count(err)
	}
	err = s.indexAgent(ctx, key, a.ID, s.usage.quota(key.Organization, agentsHeld))
	if isRefusedCreation(err) && repeats() {
		err = s.indexAgent(ctx, key, a.ID, "")
	}
	if err != nil {
		held.settle(err, false)
		return reservation{}, nothingVisible(s.refusals.count(err))
	}
	return held, nil
}

func (s *Store) indexAgent(ctx context.Context, key APIKey, id uuid.UUID, quota string) error {
	index := []string{s.keys.organization(key.Organization), s.keys.organizationAgents(key.Organization)}
	_, err := s.runByKey(ctx, key, s.proven.flow(key), indexAgent, index, key.Hash, id, quota)
	return err
}

// reserveSession reserves a session, and notes it in the index of the open ones.
func (s *Store) reserveSession(ctx context.Context, key APIKey, id uuid.UUID, n NewSession) (reservation, error) {
	held, err := s.reserveByKey(key, s.sessionDemand(n, key.Organization))
	if isRefusedCreation(err) && s.replays(ctx, key.Organization, n) {
		held, err = reservation{}, nil
	}
	if err != nil {
		return reservation{}, s.refusals.count(err)
	}
	if err = s.indexSession(ctx, key, id, s.usage.quota(key.Organization, openSessionsHeld)); isRefusedCreation(err) {
		err = s.indexBeyond(ctx, key, id, n, err)
	}
	if err != nil {
		held.settle(err, false)
	}
	return held, err
}

// indexBeyond tries again when there are too many open sessions: some of them may be over, and what repeats a request
// creates none. Errors: the refusal.
func (s *Store) indexBeyond(ctx context.Context, key APIKey, id uuid.UUID, n NewSession, refusal error) error {
	if s.replays(ctx, key.Organization, n) {
		return s.indexSession(ctx, key, id, "")
	}
	a := s.usage.account(key.Organization)
	s.usage.syncing.want(a) // the quota may have been raised
	if a.mayTidy(s.usage.now()) {
		s.closeSome(ctx, key.Organization)
		refusal = s.indexSession(ctx, key, id, s.usage.quota(key.Organization, openSessionsHeld))
	}
	return s.refusals.count(refusal)
}

// replays says whether the session was created before, for the same idempotency key.
func (s *Store) replays(ctx context.Context, organization uuid.UUID, n NewSession) bool {
	if n.Idempotency == nil {
		return false
	}
	act := actor{organization: organization, agent: n.Agent, flow: flow{Owner: organization}}
	return s.isKept(ctx, act.flow, s.keys.outcome(n.Agent, act.keyDigest(n.Idempotency, "")))
}

// closePause is how often open sessions are looked through because they seem too many, and closeSample how many.
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

// closeSome moves open sessions that are over to the closed ones.
func (s *Store) closeSome(ctx context.Context, organization uuid.UUID) {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	prune(ctx, s, s.openSessions(organization), closeSample)
}

func isRefusedCreation(err error) bool {
	var quota *QuotaError
	var tooFast *RateError
	return errors.As(err, &quota) || errors.As(err, &tooFast)
}

// isKept says whether there is something at the key of an outcome or a claim: a repeated request takes no more memory, and
// is answered as the first was.
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

// reserveKey reserves the idempotency key of an operation on an agent. Of an API key's the claim was counted before.
func (s *Store) reserveKey(ctx context.Context, act actor, once *Idempotency, outcome string) (reservation, error) {
	d := keyDemand(act, once, keySize)
	if act.family == "" {
		d.resource, d.always = noResource, true
	}
	return s.reserveUnlessKept(ctx, act.flow, d, outcome)
}

// reserveClaim reserves an idempotency key by its claim.
func (s *Store) reserveClaim(ctx context.Context, act actor, once *Idempotency, place string) (reservation, error) {
	return s.reserveUnlessKept(ctx, act.flow, keyDemand(act, once, claimSize), place)
}

// noteParts counts what the parts of a batch keep for its idempotency key.
func (s *Store) noteParts(parts []*part) {
	var kept int64
	for _, p := range parts {
		if p.Err == nil && !p.once.Replayed {
			kept++
		}
	}
	if kept > 0 {
		s.noteOutcomes(parts[0].act.organization, kept)
	}
}

// noteOutcomes counts the memory of so many outcomes whose idempotency key was counted by its claim.
func (s *Store) noteOutcomes(organization uuid.UUID, kept int64) {
	s.usage.note(organization, func(c *changes, settled *quantities) {
		c.expire(expiryOf('b', onceLifetime, onceLifetime), kept*keySize)
		settled[bytesHeld] += kept * keySize
	})
}

// noteReleased counts that a claim is not kept any more.
func (s *Store) noteReleased(organization uuid.UUID) {
	s.usage.note(organization, func(c *changes, settled *quantities) {
		c.expire(expiryOf('i', onceLifetime, onceLifetime), -1)
		c.expire(expiryOf('b', onceLifetime, onceLifetime), -claimSize)
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

// settled counts that a transaction is not pending any more, and what its settlement keeps.
func (s *Store) settled(act actor, once *Idempotency, postState string) func(Transaction, error) (Transaction, error) {
	return func(t Transaction, err error) (Transaction, error) {
		if err != nil || once != nil && once.Replayed {
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
