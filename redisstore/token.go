package redisstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// Self stands for the issuer itself in an audience.
const Self = "self"

// GrantRequest is what an exchange or a refresh asks for.
type GrantRequest struct {
	Scopes   []string // that the grant is narrowed to; none for all
	Audience []string // what the access token is for, with Self for the issuer; none for Self, or at a refresh for what the family is for
	Proof    *Proof   // of the key that its tokens are bound to; nil for none
}

func (r GrantRequest) scopes() string   { return strings.Join(r.Scopes, " ") }
func (r GrantRequest) audience() string { return strings.Join(r.Audience, " ") }

// familyAudience is how a new family stores its audience: "" for the issuer alone.
func (r GrantRequest) familyAudience() string {
	if slices.Equal(r.Audience, []string{Self}) {
		return ""
	}
	return r.audience()
}

// Grant is the content of the token pair that a successful exchange or refresh issues.
type Grant struct {
	AccessToken
	Scopes     []string
	Audience   []string // of the access token, with Self for the issuer
	Generation uint32   // of the refresh token; 0 for none
	Thumbprint string   // of the key that the access token is bound to (RFC 7638), "" for none; from CheckRefresh that of the family
	Replayed   bool     // it was granted before, and is repeated because the first response may have been lost
}

var (
	rotateRefresh = kernel.NewGrantScript("identity/rotate_refresh")
	revokeFamily  = kernel.NewScript("identity/revoke_family", writes)
	checkRefresh  = kernel.NewScript("identity/check_refresh", reads)
)

// openFamily runs a script that opens a family, for which held is reserved, and returns what the family was granted.
func (s *Store) openFamily(ctx context.Context, script kernel.GrantScript, opened AccessToken, asked GrantRequest, held kernel.Reservation, keys []string, args ...any) (Grant, error) {
	r, err := s.grant(ctx, script, opened.Agent, asked.Proof, keys, args...)
	if err != nil {
		held.Finish(err, false)
		return Grant{}, err
	}
	opened.Bound = asked.Proof != nil
	grant := Grant{
		AccessToken: opened,
		Thumbprint:  asked.Proof.Thumbprint(),
		Scopes:      strings.Fields(r.Text(0)),
		Audience:    orSelf(asked.Audience),
		Generation:  1,
	}
	organization, oldest := kernel.CutID(r, 1)
	grant.Organization = organization
	s.endOldest(ctx, grant.AccessToken, kernel.OfCell(opened.Agent).Packed(r, oldest))
	held.FinishFor(grant.Organization, r.Err)
	if r.Err == nil {
		s.noteProof(grant.Organization, asked.Proof)
	}
	return grant, r.Err
}

// RotateRefresh spends a generation of a family and grants the next one (RFC 6749 §6). The caller must have verified that the
// generation was issued. Within the grace time the immediate predecessor gets its successor again. What is asked for
// narrows only this access token; a proof binds only this access token to its key, and a family that is bound needs one of the
// same key. Errors: ErrTokenReused, after it has revoked the family; with nothing spent ErrInvalidRefreshToken,
// ErrOrganizationSuspended, *ScopeError, *AudienceError, ErrProofRequired, ErrProofUsed, ErrManyProofs.
func (s *Store) RotateRefresh(ctx context.Context, agent, family uuid.UUID, generation uint32, asked GrantRequest) (Grant, error) {
	if s.core.AnySuspended() { // only the agent's cell knows its organization
		if g, _, err := s.CheckRefresh(ctx, agent, family, generation); err == nil && s.core.Suspended(g.Organization) {
			return Grant{}, ErrOrganizationSuspended
		}
	}
	r, err := s.grant(ctx, rotateRefresh, agent, asked.Proof, s.familyKeys(agent, family),
		generation, s.config.RefreshLifetime.Milliseconds(), s.config.RefreshGrace.Milliseconds(),
		kernel.FamilyField(family), s.revocationLifetime(), s.config.FamilyLifetime.Milliseconds(), asked.scopes(), s.core.AuditAs(ctx, kernel.ActorAgent),
		asked.audience(), asked.Proof.key())
	if err != nil {
		return Grant{}, err
	}
	grant := Grant{
		AccessToken: AccessToken{Organization: r.ID(4), Agent: agent, Family: family, Bound: asked.Proof != nil},
		Thumbprint:  asked.Proof.Thumbprint(),
		Scopes:      strings.Fields(r.Text(2)),
		Audience:    orSelf(strings.Fields(r.Text(3))),
		Generation:  kernel.GenerationAt(r, 0),
		Replayed:    r.Text(1) != "",
	}
	if r.Err == nil {
		s.core.Usage.NoteEvent(grant.Organization)
		s.noteProof(grant.Organization, asked.Proof)
	}
	if r.Err == nil && s.core.Suspended(grant.Organization) { // a predecessor in its grace time, which CheckRefresh refuses as spent
		return Grant{}, ErrOrganizationSuspended
	}
	return grant, r.Err
}

// RevokeFamily revokes a family of the calling agent, with its refresh token and its access tokens. The caller must have
// verified that the family belongs to that agent. It is safe to repeat. Errors: ErrInvalidToken.
func (s *Store) RevokeFamily(ctx context.Context, caller AccessToken, family uuid.UUID) error {
	_, err := s.client.Run(ctx, caller.Flow(), revokeFamily, s.familyKeys(caller.Agent, family), caller.Organization,
		caller.FamilyField(), kernel.FamilyField(family), s.revocationLifetime(), s.core.AuditAs(ctx, kernel.ActorAgent))
	return err
}

// CheckToken returns nil while the token's agent and family are live and the agent is not suspended. Errors:
// ErrInvalidToken, *AgentSuspendedError.
func (s *Store) CheckToken(ctx context.Context, t AccessToken) error {
	_, err := s.VerifyToken(ctx, t)
	return err
}

// VerifyToken is CheckToken, and returns which scopes the token's agent has left.
func (s *Store) VerifyToken(ctx context.Context, t AccessToken) (ScopesLeft, error) {
	r, err := s.core.CheckToken(ctx, t)
	if err != nil {
		return ScopesLeft{}, err
	}
	return scopesLeftAt(r, 0), r.Err
}

// CheckRefresh returns the grant of a refresh token and when it expires, without spending it. Errors: ErrInvalidRefreshToken,
// *AudienceError when none of the agent's tokens may be for what the family is for any more.
func (s *Store) CheckRefresh(ctx context.Context, agent, family uuid.UUID, generation uint32) (Grant, time.Time, error) {
	r, err := s.client.Run(ctx, flow{}, checkRefresh, []string{s.keys.Agent(agent), s.keys.Family(agent, family)},
		generation, kernel.FamilyField(family), s.config.FamilyLifetime.Milliseconds())
	if err != nil {
		return Grant{}, time.Time{}, err
	}
	grant := Grant{
		AccessToken: AccessToken{Organization: r.ID(0), Agent: agent, Family: family},
		Scopes:      strings.Fields(r.Text(1)),
		Audience:    orSelf(strings.Fields(r.Text(3))),
		Generation:  generation,
		Thumbprint:  thumbprintOf(r.Text(4)),
	}
	return grant, r.Time(2), r.Err
}

func orSelf(audience []string) []string {
	if len(audience) == 0 {
		return []string{Self}
	}
	return audience
}

// CheckLive is CheckToken for what a suspended agent may do.
func (s *Store) CheckLive(ctx context.Context, t AccessToken) error { return s.core.CheckLive(ctx, t) }
