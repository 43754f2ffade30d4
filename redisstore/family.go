package redisstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// Family is a refresh-token family: all refresh tokens that descend from one exchange.
type Family struct {
	ID       uuid.UUID
	Created  time.Time
	LastUsed time.Time // when its latest generation was issued
	Expires  time.Time // a refresh postpones it, up to Config.FamilyLifetime after Created
}

var (
	listFamilies = kernel.NewScript("identity/list_families", reads)
	endFamily    = kernel.NewScript("identity/end_family", writes)
	endFamilies  = kernel.NewScript("identity/end_families", writes)
)

// endFamiliesAtOnce is how many families one script ends.
const endFamiliesAtOnce = 256

// Families returns a page of the live families of an agent of the key's organization, newest first. A family that a version
// without this index created is listed after its next refresh. Errors: ErrInvalidAPIKey, ErrUnknownAgent.
func (s *Store) Families(ctx context.Context, key APIKey, agent uuid.UUID, q Query) (Page[Family], error) {
	if _, err := s.core.Authenticate(ctx, s.core.Proven.Flow(key), key); err != nil {
		return Page[Family]{}, err
	}
	r, err := s.client.Run(ctx, s.core.Proven.Flow(key), listFamilies, []string{s.keys.Agent(agent), s.keys.AgentFamilies(agent)}, key.Organization)
	if err != nil {
		return Page[Family]{}, err
	}
	now, ids := r.Time(0), kernel.OfCell(agent).IDs(r, 1)
	if r.Err != nil {
		return Page[Family]{}, r.Err
	}
	return s.loadFamilies(ctx, s.core.Proven.Flow(key), agent, now, newestFirst(ids, q.Before), q.Limit)
}

// newestFirst sorts ids, newest first, and keeps only those below before, unless that is uuid.Nil.
func newestFirst(ids []uuid.UUID, before uuid.UUID) []uuid.UUID {
	if before != uuid.Nil {
		ids = slices.DeleteFunc(ids, func(id uuid.UUID) bool { return bytes.Compare(id[:], before[:]) >= 0 })
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(b[:], a[:]) })
	return ids
}

// loadFamilies reads families in this order until it has one more than the limit, which means that there is a next page.
func (s *Store) loadFamilies(ctx context.Context, f flow, agent uuid.UUID, now time.Time, ids []uuid.UUID, limit int) (Page[Family], error) {
	var found []Family
	for chunk := range slices.Chunk(ids, max(limit+1, kernel.MinChunk)) {
		replies, err := s.client.ReadAll(ctx, f, kernel.Map(chunk, func(id uuid.UUID) string { return s.keys.Family(agent, id) }), "r", "c")
		if err != nil {
			return Page[Family]{}, err
		}
		for i, r := range replies {
			if r.Optional(0) == "" {
				continue // it has ended
			}
			family := s.familyIn(r, chunk[i])
			if r.Err != nil {
				return Page[Family]{}, r.Err
			}
			if family.Expires.After(now) {
				found = append(found, family)
			}
		}
		if len(found) > limit {
			return Page[Family]{Items: found[:limit], Next: found[limit-1].ID}, nil
		}
	}
	return Page[Family]{Items: found}, nil
}

// familyIn reads a family from two fields: the time of its latest generation, and its creation in ms after its id's time.
func (s *Store) familyIn(r *reply, id uuid.UUID) Family {
	family := Family{ID: id, LastUsed: r.Time(0), Created: r.TimeSince(kernel.MadeAt(id), 1)}
	family.Expires = family.LastUsed.Add(s.config.RefreshLifetime)
	if last := family.Created.Add(s.config.FamilyLifetime); last.Before(family.Expires) {
		family.Expires = last
	}
	return family
}

// EndFamily revokes a family of an agent of the key's organization, with its refresh token and its access tokens; or an access token
// without a refresh token. Of such ids nothing is stored, so any that may be one of the agent's is revoked, 1,000 within the life of
// a mark. Repeating it changes nothing while an access token of the family may live; after that the family is unknown, and a token
// without a refresh token is revoked again. Errors: ErrInvalidAPIKey, ErrUnknownAgent, ErrUnknownFamily, ErrManyMarks.
func (s *Store) EndFamily(ctx context.Context, key APIKey, agent, family uuid.UUID) error {
	if _, err := s.core.Authenticate(ctx, s.core.Proven.Urgent(key), key); err != nil {
		return err
	}
	var held kernel.Reservation
	if kernel.IsTokenID(family) { // no exchange has counted it
		lifetime := time.Duration(s.revocationLifetime()) * time.Millisecond
		var err error
		held, err = s.core.Usage.Reserve(kernel.Demand{
			Organization: key.Organization, Resource: kernel.NoResource, Bytes: kernel.MarkSize, Retained: lifetime, Always: true, Unpaced: true,
		})
		if err != nil {
			return err
		}
	}
	marked, err := s.endFamily(ctx, s.core.Proven.Urgent(key), key.Organization, agent, family, kernel.ActorKey)
	held.Finish(err, err == nil && !marked)
	return err
}

// endFamily also says whether it has marked a token without a refresh token.
func (s *Store) endFamily(ctx context.Context, f flow, organization, agent, family uuid.UUID, who string) (marked bool, err error) {
	if kernel.CellOf(family) != kernel.CellOf(agent) {
		return false, ErrUnknownFamily
	}
	keys := append(s.familyKeys(agent, family), s.keys.TokenMarks(agent))
	r, err := s.client.Run(ctx, f, endFamily, keys, organization, kernel.FamilyField(family), s.revocationLifetime(), s.core.AuditAs(ctx, who))
	if err != nil {
		return false, err
	}
	return r.Text(0) != "", r.Err
}

// endOldest ends an agent's surplus families. If it fails, the next exchange returns them again.
func (s *Store) endOldest(ctx context.Context, t AccessToken, oldest []uuid.UUID) {
	for _, family := range oldest {
		if _, err := s.endFamily(ctx, flow{}, t.Organization, t.Agent, family, kernel.ActorAgent); err != nil && err != ErrUnknownFamily {
			return
		}
	}
}

// endRevokedFamilies ends the access tokens of an agent's families of earlier epochs, which are not refreshed any more. It may be
// repeated.
func (s *Store) endRevokedFamilies(ctx context.Context, f flow, agent uuid.UUID) error {
	for {
		ended, err := s.revokeSomeFamilies(ctx, f, agent)
		if err != nil {
			return err
		}
		if ended < endFamiliesAtOnce {
			return nil
		}
	}
}

// revokeSomeFamilies records some families of an earlier epoch as revoked, and returns how many.
func (s *Store) revokeSomeFamilies(ctx context.Context, f flow, agent uuid.UUID) (int, error) {
	cell := kernel.OfCell(agent)
	r, err := s.client.Run(ctx, f, endFamilies, []string{s.keys.Agent(agent), s.keys.AgentFamilies(agent)}, cell.Cell,
		s.revocationLifetime(), endFamiliesAtOnce)
	if err != nil {
		return 0, err
	}
	ids := cell.IDs(r, 0)
	if r.Err != nil || len(ids) == 0 {
		return 0, r.Err
	}
	keys := kernel.Map(ids, func(id uuid.UUID) string { return s.keys.Family(agent, id) })
	_ = s.client.Redis().Unlink(ctx, keys...).Err() // their epoch is over: keys that remain cannot be used, and expire
	return len(ids), nil
}

func (s *Store) familyKeys(agent, family uuid.UUID) []string {
	return []string{s.keys.Agent(agent), s.keys.Family(agent, family), s.keys.Events(agent), s.keys.AgentFamilies(agent)}
}

// clockLeeway extends the record of a revocation so that it outlives the family's access tokens in spite of clocks that
// differ: two hours behind to two hours ahead, and a step of Redis's clock by one more.
const clockLeeway = 5 * time.Hour

// revocationLifetime is how long Redis records a family as revoked, in ms. Access tokens expire by the service's clock, the
// record by Redis's.
func (s *Store) revocationLifetime() int64 {
	return (s.config.AccessLifetime + clockLeeway).Milliseconds()
}

func (s *Store) familyDemand(organization, agent [16]byte, asked GrantRequest) kernel.Demand {
	lifetime := s.config.RefreshLifetime
	return kernel.Demand{
		Organization: organization, Agent: agent, Resource: kernel.FamiliesHeld, Lifetime: lifetime, Events: kernel.EventSize,
		Bytes: kernel.FamilySize + kernel.Texts(kernel.TableSize, asked.scopes(), asked.familyAudience()), Retained: lifetime,
	}
}
