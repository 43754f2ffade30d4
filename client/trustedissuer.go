package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// TrustedIssuerParams describe a new trusted issuer: a platform whose tokens become tokens of agents (AgentOptions.Assertion).
type TrustedIssuerParams struct {
	Issuer      string          `json:"issuer"`            // as its tokens name it in iss: https://…, or spiffe://trust-domain
	JWKSURI     string          `json:"jwks_uri,omitzero"` // where its keys are; or
	JWKS        json.RawMessage `json:"jwks,omitzero"`     // its keys themselves, a JWK Set of at most 16 KiB
	Rules       []TrustRule     `json:"rules"`             // 1 to 64
	Description string          `json:"description,omitzero"`

	IdempotencyKey string `json:"-"` // empty: a random one
}

// TrustRule lets tokens with all of these claims become tokens of the agent. A trailing * behind / or : stands for any rest:
// {"sub": "repo:acme/agent:*"}.
type TrustRule struct {
	AgentID string            `json:"agent_id"`
	Claims  map[string]string `json:"claims"` // 1 to 16
}

// TrustedIssuerChanges are changes of a trusted issuer. The zero value of a field leaves it as it is. JWKSURI replaces JWKS, and the
// other way round.
type TrustedIssuerChanges struct {
	JWKSURI     string          `json:"jwks_uri,omitzero"`
	JWKS        json.RawMessage `json:"jwks,omitzero"`
	Rules       []TrustRule     `json:"rules,omitzero"`
	Description *string         `json:"description,omitzero"`
}

// TrustedIssuerInfo is a trusted issuer as the service returns it.
type TrustedIssuerInfo struct {
	ID          string          `json:"id"`
	Issuer      string          `json:"issuer"`
	JWKSURI     string          `json:"jwks_uri,omitzero"` // empty: the keys are in JWKS
	JWKS        json.RawMessage `json:"jwks,omitzero"`     // nil: they are at JWKSURI
	Rules       []TrustRule     `json:"rules"`
	Description string          `json:"description,omitzero"`
	CreatedAt   time.Time       `json:"created_at"`
}

// CreateTrustedIssuer trusts the issuer for what the rules say. An organization has at most 32; beyond that the error is
// *QuotaExceeded.
func (o *Organization) CreateTrustedIssuer(ctx context.Context, p TrustedIssuerParams) (TrustedIssuerInfo, error) {
	return decoded[TrustedIssuerInfo](ctx, o.caller, o.caller.client.keyed(trustedIssuersPath, p.IdempotencyKey, p))
}

// TrustedIssuers lists the organization's trusted issuers, newest first.
func (o *Organization) TrustedIssuers(ctx context.Context) ([]TrustedIssuerInfo, error) {
	return decoded[[]TrustedIssuerInfo](ctx, o.caller, call{method: http.MethodGet, path: trustedIssuersPath})
}

// GetTrustedIssuer reads a trusted issuer.
func (o *Organization) GetTrustedIssuer(ctx context.Context, id string) (TrustedIssuerInfo, error) {
	return decoded[TrustedIssuerInfo](ctx, o.caller, call{method: http.MethodGet, path: trustedIssuerPath(id)})
}

// UpdateTrustedIssuer changes a trusted issuer. Tokens that were issued before live on until they expire, up to an hour.
func (o *Organization) UpdateTrustedIssuer(ctx context.Context, id string, changes TrustedIssuerChanges) (TrustedIssuerInfo, error) {
	q := call{method: http.MethodPatch, path: trustedIssuerPath(id), body: changes, semantics: idempotent}
	return decoded[TrustedIssuerInfo](ctx, o.caller, q)
}

// DeleteTrustedIssuer trusts the issuer no more. Tokens that were issued before live on until they expire, up to an hour.
func (o *Organization) DeleteTrustedIssuer(ctx context.Context, id string) error {
	return o.caller.remove(ctx, trustedIssuerPath(id))
}
