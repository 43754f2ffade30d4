package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// ClientKeys is what an agent's assertions are to be verified with: a set of keys, or where it is published.
type ClientKeys struct {
	Organization uuid.UUID
	JWKS         string // JSON Web Key Set, "" for none
	JWKSURI      string // "" for none
	version      string
}

// ClientAssertion is an assertion of an agent (RFC 7523 §2.2) that was verified with these keys.
type ClientAssertion struct {
	Agent uuid.UUID
	Keys  ClientKeys
	ID    [16]byte      // of the SHA-256 of its jti
	Left  time.Duration // until no instance takes it any more
}

var (
	exchangeAssertion = kernel.NewGrantScript("identity/exchange_assertion")
	checkAssertion    = kernel.NewScript("identity/check_assertion", writes)
)

// ClientKeys returns the keys of an agent. It authenticates no caller. Errors: ErrInvalidCredentials for an agent that is not live
// or has no keys.
func (s *Store) ClientKeys(ctx context.Context, agent uuid.UUID) (ClientKeys, error) {
	replies, err := s.client.ReadAll(ctx, flow{}, []string{s.keys.Agent(agent)}, "organization", "revoked", "jwks", "jwks_uri", "keys_version")
	if err != nil {
		return ClientKeys{}, err
	}
	r := replies[0]
	k := ClientKeys{JWKS: r.Optional(2), JWKSURI: r.Optional(3), version: r.Optional(4)}
	if r.Optional(0) == "" || r.Optional(1) != "" || k.JWKS == "" && k.JWKSURI == "" {
		return ClientKeys{}, ErrInvalidCredentials
	}
	k.Organization = r.ID(0)
	return k, r.Err
}

// arguments are what identity/block/refuse_assertion.lua and identity/block/keep_assertion.lua take.
func (a ClientAssertion) arguments() []any {
	return []any{a.Keys.version, a.ID[:], a.Left.Milliseconds()}
}

// ExchangeAssertion is ExchangeSecret for an assertion, which it uses up unless it is refused. A second request with the same
// assertion is refused, also after a reply that was lost. Errors: those of ExchangeSecret; ErrChangedMeanwhile when the agent
// has other keys by now, ErrManyAssertions.
func (s *Store) ExchangeAssertion(ctx context.Context, a ClientAssertion, asked GrantRequest) (Grant, error) {
	if s.core.Suspended(a.Keys.Organization) {
		return Grant{}, ErrOrganizationSuspended
	}
	d := s.familyDemand(a.Keys.Organization, a.Agent, asked)
	d.Bytes += kernel.AssertionSize
	held, err := s.core.Usage.Reserve(d)
	if err != nil {
		return Grant{}, s.core.Refusals.Count(err)
	}
	family := NewID(a.Agent)
	args := append(a.arguments(), s.config.RefreshLifetime.Milliseconds(), s.config.FamilyLifetime.Milliseconds(), family,
		asked.scopes(), s.core.AuditAs(ctx, kernel.ActorAgent), asked.familyAudience(), asked.Proof.key())
	keys := append(s.familyKeys(a.Agent, family), s.keys.Assertions(a.Agent))
	return s.openFamily(ctx, exchangeAssertion, AccessToken{Agent: a.Agent, Family: family}, asked, held, keys, args...)
}

// CheckAssertion authenticates an agent by an assertion, which it uses up. Errors: ErrInvalidCredentials for an agent that is not live
// or an assertion that was used; ErrChangedMeanwhile, ErrManyAssertions, ErrOrganizationSuspended.
func (s *Store) CheckAssertion(ctx context.Context, a ClientAssertion) error {
	organization := a.Keys.Organization
	held, err := s.core.Usage.Reserve(kernel.Demand{
		Organization: organization, Agent: a.Agent, Resource: kernel.NoResource, Bytes: kernel.AssertionSize, Retained: a.Left, Always: true, Unpaced: true,
	})
	if err != nil {
		return err
	}
	r, err := s.client.Run(ctx, flow{}, checkAssertion, []string{s.keys.Agent(a.Agent), s.keys.Assertions(a.Agent)}, a.arguments()...)
	if err == nil {
		err = r.Err
	}
	held.Finish(err, false)
	if err == nil && s.core.Suspended(organization) {
		return ErrOrganizationSuspended
	}
	return err
}
