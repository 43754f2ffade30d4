package redisstore

import (
	"cmp"
	"context"
	"strings"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

var (
	findTrustedIssuer = kernel.NewScript("identity/find_trusted_issuer", reads)
	grantByIssuer     = kernel.NewGrantScript("identity/grant_by_issuer")
)

// IssuerFor returns the trusted issuer of this name of an agent's organization, and the organization. No caller is authenticated by
// that. Errors: ErrUnknownIssuer, also for an unknown agent.
func (s *Store) IssuerFor(ctx context.Context, agent uuid.UUID, name string) (TrustedIssuer, uuid.UUID, error) {
	found, err := s.client.Call(ctx, flow{}, reads, "hget", s.keys.Agent(agent), "organization")
	if err != nil {
		return TrustedIssuer{}, uuid.Nil, err
	}
	if found == nil {
		return TrustedIssuer{}, uuid.Nil, ErrUnknownIssuer
	}
	r := &reply{Values: []any{found}}
	organization := r.ID(0)
	if r.Err != nil {
		return TrustedIssuer{}, uuid.Nil, r.Err
	}
	i, err := s.issuerNamed(ctx, organization, name)
	return i, organization, err
}

func (s *Store) issuerNamed(ctx context.Context, organization uuid.UUID, name string) (TrustedIssuer, error) {
	r, err := s.client.Run(ctx, flow{}, findTrustedIssuer, s.issuerKeys(organization)[1:], name)
	if err != nil {
		return TrustedIssuer{}, err
	}
	id, text := r.ID(0), r.Text(1)
	if r.Err != nil {
		return TrustedIssuer{}, r.Err
	}
	return parseTrustedIssuer(id, text)
}

// GrantByIssuer grants an agent of the organization an access token, without a refresh token, because of a token of this issuer.
// The caller must have verified that token, and that the agent is one that a rule of the issuer gives it to. Errors: ErrUnknownIssuer when
// the organization has stopped to trust the issuer as it was read; ErrInvalidCredentials for an agent that is not live;
// ErrOrganizationSuspended, *AgentSuspendedError, *ScopeError, *AudienceError, *QuotaError, *RateError, ErrProofRequired,
// ErrProofUsed, ErrManyProofs.
func (s *Store) GrantByIssuer(ctx context.Context, organization, agent uuid.UUID, issuer TrustedIssuer, asked GrantRequest) (Grant, error) {
	if s.core.Suspended(organization) {
		return Grant{}, ErrOrganizationSuspended
	}
	// Reading the issuer's keys may have taken seconds, in which the trust in it may have ended.
	if now, err := s.issuerNamed(ctx, organization, issuer.Settings.Issuer); err != nil || now.stored != issuer.stored || now.ID != issuer.ID {
		return Grant{}, cmp.Or(err, ErrUnknownIssuer)
	}
	held, err := s.core.Usage.Reserve(kernel.Demand{Organization: organization, Agent: agent, Resource: kernel.NoResource, Events: kernel.EventSize})
	if err != nil {
		return Grant{}, s.core.Refusals.Count(err)
	}
	r, err := s.grant(ctx, grantByIssuer, agent, asked.Proof, []string{s.keys.Agent(agent), s.keys.Events(agent)},
		organization, asked.scopes(), asked.audience(), s.core.AuditAs(ctx, kernel.ActorAgent), kernel.NewTokenID(agent).String(), issuer.ID.String(), asked.Proof.key())
	held.Finish(err, false)
	if err != nil {
		return Grant{}, err
	}
	s.noteProof(organization, asked.Proof)
	return Grant{
		AccessToken: AccessToken{Organization: organization, Agent: agent, Family: kernel.IDOrNilAt(r, 1), Bound: asked.Proof != nil},
		Thumbprint:  asked.Proof.Thumbprint(),
		Scopes:      strings.Fields(r.Text(0)),
		Audience:    orSelf(asked.Audience),
	}, r.Err
}
