package client

import (
	"context"
	"net/http"
)

// Introspection is what a token is good for now (RFC 7662). Of one that is not live, or not the organization's, Active is
// false and nothing else is said.
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

// Introspect tells what an access or refresh token of one of the organization's agents is good for now.
func (o *Organization) Introspect(ctx context.Context, token string) (Introspection, error) {
	var info Introspection
	body := map[string]string{"token": token}
	err := o.caller.do(ctx, call{method: http.MethodPost, path: "/v1/auth/introspect", body: body, effect: reads}, &info)
	return info, err
}
