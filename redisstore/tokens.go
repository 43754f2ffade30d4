package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/redisclient"
)

// Grant is what a successful exchange or refresh entitles an agent to: a token pair with these facts.
type Grant struct {
	AccessToken
	Scopes     []string
	Generation uint32 // of the refresh token
	Replayed   bool   // it was granted before, and is again because its answer may have been lost
}

var (
	exchangeSecret = newScript("exchange_secret", writes)
	rotateRefresh  = newScript("rotate_refresh", writes)
	revokeFamily   = newScript("revoke_family", writes)
	checkSecret    = newScript("check_secret", bestEffort)
	checkRefresh   = newScript("check_refresh", reads)
)

// ExchangeSecret opens a new refresh-token family for the agent whose secret this is, narrowed to the scopes if some are
// given. An agent has at most 10,000 families: beyond, those that were not used for longest end. Errors:
// ErrInvalidCredentials, ErrOrganizationSuspended, *ScopeError, *QuotaError, *RateError. Whose an agent is that this instance
// has not seen yet only the answer tells, so its first exchange is never refused by a quota.
func (s *Store) ExchangeSecret(ctx context.Context, agent uuid.UUID, secretHash [32]byte, scopes ...string) (Grant, error) {
	if s.anySuspended() { // the agent's organization is known in its cell alone
		if _, err := s.CheckSecret(ctx, agent, secretHash); err != nil {
			return Grant{}, err
		}
	}
	family, narrowed := NewID(agent), strings.Join(scopes, " ")
	held, err := s.usage.reserve(s.familyDemand(s.usage.organizationOf(agent), agent, narrowed))
	if err != nil {
		return Grant{}, s.refusedExchange(ctx, agent, secretHash, err)
	}
	r, err := s.client.Run(ctx, flow{}, exchangeSecret, s.familyKeys(agent, family),
		secretHash, s.config.RefreshLifetime.Milliseconds(), s.config.FamilyLifetime.Milliseconds(), family,
		narrowed, s.auditAs(ctx, actorAgent))
	if err != nil {
		held.finish(err, false)
		return Grant{}, err
	}
	grant := Grant{
		AccessToken: AccessToken{Organization: r.ID(0), Agent: agent, Family: family},
		Scopes:      strings.Fields(r.Text(1)),
		Generation:  1,
	}
	if len(r.Values) > 2 {
		s.endOldest(ctx, grant.AccessToken, ofCell(agent).ids(r, 2))
	}
	held.finishFor(grant.Organization, r.Err)
	return grant, r.Err
}

// refusedExchange returns a refusal by a quota, which says what the organization holds, only to who has the secret.
func (s *Store) refusedExchange(ctx context.Context, agent uuid.UUID, secretHash [32]byte, refusal error) error {
	var quota *QuotaError
	if errors.As(refusal, &quota) {
		if _, err := s.CheckSecret(ctx, agent, secretHash); err != nil {
			return err
		}
	}
	return s.refusals.count(refusal)
}

// RotateRefresh spends a generation of a family and grants the next; the caller has verified that the generation was
// issued. The immediate predecessor is granted its successor again within the grace time. Scopes, if some are given,
// narrow this access token only. Errors: ErrInvalidRefreshToken; *ScopeError, with nothing spent; ErrTokenReused, when
// the family has just been revoked for it.
func (s *Store) RotateRefresh(ctx context.Context, agent, family uuid.UUID, generation uint32, scopes ...string) (Grant, error) {
	if s.anySuspended() { // the agent's organization is known in its cell alone
		if g, _, err := s.CheckRefresh(ctx, agent, family, generation); err == nil && s.Suspended(g.Organization) {
			return Grant{}, ErrOrganizationSuspended
		}
	}
	r, err := s.client.Run(ctx, flow{}, rotateRefresh, s.familyKeys(agent, family),
		generation, s.config.RefreshLifetime.Milliseconds(), s.config.RefreshGrace.Milliseconds(),
		familyField(family), s.revocationLifetime(), s.config.FamilyLifetime.Milliseconds(), strings.Join(scopes, " "), s.auditAs(ctx, actorAgent))
	if err != nil {
		return Grant{}, err
	}
	grant := Grant{
		AccessToken: AccessToken{Organization: r.ID(1), Agent: agent, Family: family},
		Scopes:      strings.Fields(r.Text(2)),
		Generation:  generationAt(r, 0),
		Replayed:    len(r.Values) > 3,
	}
	if r.Err == nil {
		s.usage.noteEvent(grant.Organization)
	}
	if r.Err == nil && s.Suspended(grant.Organization) { // a predecessor within the grace, which CheckRefresh calls spent
		return Grant{}, ErrOrganizationSuspended
	}
	return grant, r.Err
}

// RevokeFamily revokes a family of the calling agent, its refresh token and its access tokens; the caller has verified
// that the family is that agent's. Revoking it again changes nothing. Errors: ErrInvalidToken.
func (s *Store) RevokeFamily(ctx context.Context, caller AccessToken, family uuid.UUID) error {
	_, err := s.client.Run(ctx, caller.flow(), revokeFamily, s.familyKeys(caller.Agent, family), caller.Organization,
		familyField(caller.Family), familyField(family), s.revocationLifetime(), s.auditAs(ctx, actorAgent))
	return err
}

// CheckSecret returns the organization of the agent whose secret this is. That a new secret is in use is noted; when Redis
// refuses every write, the next use of it will be. Errors: ErrInvalidCredentials, ErrOrganizationSuspended.
func (s *Store) CheckSecret(ctx context.Context, agent uuid.UUID, secretHash [32]byte) (uuid.UUID, error) {
	keys := []string{s.keys.agent(agent)}
	r, err := s.client.Run(ctx, flow{}, checkSecret, keys, secretHash, "1")
	if redisclient.RefusedWrite(err) {
		r, err = s.client.Run(ctx, flow{}, checkSecret, keys, secretHash, "")
	}
	if err != nil {
		return uuid.Nil, err
	}
	organization := r.ID(0)
	if r.Err == nil && s.Suspended(organization) {
		return uuid.Nil, ErrOrganizationSuspended
	}
	return organization, r.Err
}

// CheckRefresh returns the grant that a refresh token stands for, unspent, and when it expires. Errors:
// ErrInvalidRefreshToken.
func (s *Store) CheckRefresh(ctx context.Context, agent, family uuid.UUID, generation uint32) (Grant, time.Time, error) {
	r, err := s.client.Run(ctx, flow{}, checkRefresh, []string{s.keys.agent(agent), s.keys.family(agent, family)},
		generation, familyField(family), s.config.FamilyLifetime.Milliseconds())
	if err != nil {
		return Grant{}, time.Time{}, err
	}
	grant := Grant{
		AccessToken: AccessToken{Organization: r.ID(0), Agent: agent, Family: family},
		Scopes:      strings.Fields(r.Text(1)),
		Generation:  generation,
	}
	return grant, r.Time(2), r.Err
}
