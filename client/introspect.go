package client

import (
	"context"
	"encoding/json"
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

	Audience   Audience `json:"aud,omitzero"`        // for which the token is
	SessionID  string   `json:"session_id,omitzero"` // on which alone a delegated token acts
	Thumbprint string   `json:"-"`                   // of the key that the token is bound to; empty: none
	Actors     []string `json:"-"`                   // ids of the agents that delegated the token, the last one first
}

// Audience is the audiences of a token.
type Audience []string

// UnmarshalJSON reads a string, or an array of strings (RFC 7519 §4.1.3).
func (a *Audience) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		var one string
		err := json.Unmarshal(text, &one)
		*a = Audience{one}
		return err
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// Introspect returns the current state of an access or refresh token of one of the organization's agents.
func (o *Organization) Introspect(ctx context.Context, token string) (Introspection, error) {
	var answer struct {
		Introspection
		Confirmation struct {
			Thumbprint string `json:"jkt"`
		} `json:"cnf"`
		Actor *actor `json:"act"`
	}
	body := map[string]string{"token": token}
	err := o.caller.do(ctx, call{method: http.MethodPost, path: "/v1/auth/introspect", body: body, semantics: safe}, &answer)
	info := answer.Introspection
	info.Thumbprint = answer.Confirmation.Thumbprint
	for a := answer.Actor; a != nil; a = a.Actor {
		info.Actors = append(info.Actors, a.Subject)
	}
	return info, err
}

// actor acts for the subject of a token, and names the actor that it acts for in turn (RFC 8693 §4.1).
type actor struct {
	Subject string `json:"sub"`
	Actor   *actor `json:"act"`
}
