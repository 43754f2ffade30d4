package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// AgentParams describe a new agent.
type AgentParams struct {
	Name        string   `json:"name"`   // 1 to 200 characters
	Scopes      []string `json:"scopes"` // at most 64
	Description string   `json:"description,omitzero"`
	Metadata    any      `json:"metadata,omitzero"` // a JSON object of at most 16 KiB

	Limits AgentLimits `json:"-"`

	NoSecret     bool            `json:"-"`                      // the agent authenticates by a key or a workload's token alone
	JWKS         json.RawMessage `json:"jwks,omitzero"`          // its public keys, as Key.JWKS and PublicJWKS return them; or
	JWKSURI      string          `json:"jwks_uri,omitzero"`      // where they are
	Audiences    *[]string       `json:"audiences,omitzero"`     // that its tokens may have; nil: any; empty: the service alone
	DPoPRequired bool            `json:"dpop_required,omitzero"` // its tokens must be bound to a key

	IdempotencyKey string `json:"-"` // empty: a random one
}

// AgentInfo is an agent as the service returns it.
type AgentInfo struct {
	ID             string          `json:"id"`
	OrganizationID string          `json:"org_id"`
	Name           string          `json:"name"`
	Scopes         []string        `json:"scopes"`
	Status         string          `json:"status"` // active or revoked
	Description    string          `json:"description,omitzero"`
	Metadata       json.RawMessage `json:"metadata"`
	CreatedAt      time.Time       `json:"created_at"`
	RevokedAt      time.Time       `json:"revoked_at,omitzero"`
	Secret         Credential      `json:"secret,omitzero"` // only in the response to its creation

	SuspendedAt      time.Time `json:"suspended_at,omitzero"` // zero: the agent is not suspended
	SuspensionReason string    `json:"suspension_reason,omitzero"`

	Audiences    *[]string       `json:"audiences,omitzero"` // nil: any
	JWKS         json.RawMessage `json:"jwks,omitzero"`
	JWKSURI      string          `json:"jwks_uri,omitzero"`
	DPoPRequired bool            `json:"dpop_required,omitzero"`
	HasSecret    *bool           `json:"has_secret,omitzero"` // nil: it has one

	Limits *AgentLimits `json:"limits,omitzero"` // nil: not returned, as in lists
	Usage  *AgentUsage  `json:"usage,omitzero"`  // nil: not returned
}

// RotatedSecret is a new secret. The previous one ends at PreviousExpiresAt.
type RotatedSecret struct {
	Secret            Credential `json:"secret"`
	PreviousExpiresAt time.Time  `json:"previous_expires_at"`
}

// AgentFilter narrows a list of agents. The zero value selects all.
type AgentFilter struct {
	Status string // active or revoked
}

// CreateAgent creates an agent. Only this response holds its secret, unless it has none.
func (o *Organization) CreateAgent(ctx context.Context, p AgentParams) (AgentInfo, error) {
	var made AgentInfo
	p.Scopes = append([]string{}, p.Scopes...) // null would be refused
	p.Metadata = asGiven(p.Metadata)
	body := struct {
		AgentParams
		Limits map[string]any `json:"limits,omitzero"`
		Secret *bool          `json:"secret,omitzero"`
	}{AgentParams: p, Limits: p.Limits.sent()}
	if p.NoSecret {
		body.Secret = new(false)
	}
	if p.Audiences != nil {
		body.Audiences = new(append([]string{}, *p.Audiences...)) // null would be refused
	}
	err := o.caller.do(ctx, o.caller.client.keyed("/v1/agents", p.IdempotencyKey, body), &made)
	return made, err
}

// GetAgent reads an agent.
func (o *Organization) GetAgent(ctx context.Context, id string) (AgentInfo, error) {
	var info AgentInfo
	err := o.caller.do(ctx, call{method: http.MethodGet, path: agentPath(id)}, &info)
	return info, err
}

// Agents yields the organization's agents, newest first.
func (o *Organization) Agents(ctx context.Context, f AgentFilter) iter.Seq2[AgentInfo, error] {
	return list[AgentInfo](ctx, o.caller, "/v1/agents", agentsPerPage, "status", f.Status)
}

// RevokeAgent ends an agent at once, with its secret, tokens and open sessions. Revoking it again has no effect.
func (o *Organization) RevokeAgent(ctx context.Context, id string) error {
	var revoked struct{}
	return o.caller.do(ctx, call{method: http.MethodPost, path: agentPath(id) + "/revoke", semantics: idempotent}, &revoked)
}

// RotateSecretParams are the options of a secret's rotation. The zero value ends the current secret at once and keeps the
// agent's tokens.
type RotateSecretParams struct {
	Grace          time.Duration // how long the current secret stays valid, to the second
	RevokeFamilies bool          // also ends all refresh and access tokens of the agent, after a theft

	IdempotencyKey string // empty: a random one
}

// RotateAgentSecret replaces an agent's secret.
func (o *Organization) RotateAgentSecret(ctx context.Context, id string, p RotateSecretParams) (RotatedSecret, error) {
	var rotated RotatedSecret
	body := struct {
		Grace          int64 `json:"grace_seconds,omitzero"`
		RevokeFamilies bool  `json:"revoke_families,omitzero"`
	}{seconds(p.Grace), p.RevokeFamilies}
	err := o.caller.do(ctx, o.caller.client.keyed(agentPath(id)+"/secret/rotate", p.IdempotencyKey, body), &rotated)
	return rotated, err
}
