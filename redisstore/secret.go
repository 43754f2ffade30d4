package redisstore

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

var (
	exchangeSecret = kernel.NewGrantScript("identity/exchange_secret")
	checkSecret    = kernel.NewScript("identity/check_secret", bestEffort)
)

// ExchangeSecret opens a new refresh-token family for the agent with this secret, narrowed as it is asked for. An
// agent has at most 10,000 families: beyond that, the least recently used families end. This instance learns an agent's
// organization from its first exchange, so no quota refuses that one. A proof binds the family to its key. Errors:
// ErrInvalidCredentials, ErrOrganizationSuspended, *ScopeError, *AudienceError, *QuotaError, *RateError, ErrProofRequired,
// ErrProofUsed, ErrManyProofs.
func (s *Store) ExchangeSecret(ctx context.Context, agent uuid.UUID, secretHash [32]byte, asked GrantRequest) (Grant, error) {
	if s.core.AnySuspended() { // only the agent's cell knows its organization
		if _, err := s.CheckSecret(ctx, agent, secretHash); err != nil {
			return Grant{}, err
		}
	}
	family := NewID(agent)
	held, err := s.core.Usage.Reserve(s.familyDemand(s.core.Usage.OrganizationOf(agent), agent, asked))
	if err != nil {
		return Grant{}, s.refusedExchange(ctx, agent, secretHash, err)
	}
	return s.openFamily(ctx, exchangeSecret, AccessToken{Agent: agent, Family: family}, asked, held, s.familyKeys(agent, family),
		secretHash, s.config.RefreshLifetime.Milliseconds(), s.config.FamilyLifetime.Milliseconds(), family,
		asked.scopes(), s.core.AuditAs(ctx, kernel.ActorAgent), asked.familyAudience(), asked.Proof.key())
}

// refusedExchange returns the refusal. It checks the secret before a *QuotaError, because that reveals the organization's
// usage.
func (s *Store) refusedExchange(ctx context.Context, agent uuid.UUID, secretHash [32]byte, refusal error) error {
	var quota *QuotaError
	if errors.As(refusal, &quota) {
		if _, err := s.CheckSecret(ctx, agent, secretHash); err != nil {
			return err
		}
	}
	return s.core.Refusals.Count(refusal)
}

// CheckSecret returns the organization of the agent with this secret. It notes the first use of a new secret, unless Redis
// refuses every write; then the next use notes it. Errors: ErrInvalidCredentials, ErrOrganizationSuspended.
func (s *Store) CheckSecret(ctx context.Context, agent uuid.UUID, secretHash [32]byte) (uuid.UUID, error) {
	keys := []string{s.keys.Agent(agent)}
	r, err := s.client.Run(ctx, flow{}, checkSecret, keys, secretHash, "1")
	if redisclient.RefusedWrite(err) {
		r, err = s.client.Run(ctx, flow{}, checkSecret, keys, secretHash, "")
	}
	if err != nil {
		return uuid.Nil, err
	}
	organization := r.ID(0)
	if r.Err == nil && s.core.Suspended(organization) {
		return uuid.Nil, ErrOrganizationSuspended
	}
	return organization, r.Err
}
