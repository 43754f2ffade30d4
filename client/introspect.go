package client

import (
	"context"
	"net/http"
)

// Introspection is the current state of a token (RFC 7662). Active is false, and all other fields are empty, for a token that
// is not live or belongs to another organization.
type Introspection struct {
	Active         bool   `json:"active"`
	Scope          string `json:"scope,omitzero"` // separated by spaces
	ClientID       string `json:"client_id,omitzero"`
	TokenType      string `json:"token_type,omitzero"`
	Expires        int64  `json:"exp,omitzero"` // seconds since 1970
	Issued         int64  `json:"iat,omitzero"` // seconds since 1970
	Subject        string `json:"sub,omitzero"`
	Issuer         string `json:"iss,omitzero"`
	AgentID        string `json:"agent_id,omitzero"`
	OrganizationID string `json:"org_id,omitzero"`
}

// Introspect returns the current state of an access or refresh token of one of the organization's agents.
func (o *Organization) Introspect(ctx context.Context, token string) (Introspection, error) {
	var info Introspection
	body := map[string]string{"token": token}
	err := o.caller.do(ctx, call{method: http.MethodPost, path: "/v1/auth/introspect", body: body, semantics: safe}, &info)
	return info, err
}
