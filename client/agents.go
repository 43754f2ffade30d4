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
	Scopes      []string `json:"scopes"` // at most 64; none: it may do nothing that asks for a scope
	Description string   `json:"description,omitzero"`
	Metadata    any      `json:"metadata,omitzero"` // a JSON object of at most 16 KiB
}

// AgentInfo is an agent as the service shows it.
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
	Secret         Credential      `json:"secret,omitzero"` // in the answer to its creation only
}

// RotatedSecret is a new secret. The one before it ends at PreviousExpiresAt, or has ended.
type RotatedSecret struct {
	Secret            Credential `json:"secret"`
	PreviousExpiresAt time.Time  `json:"previous_expires_at"`
}

// AgentFilter narrows a list of agents. The zero value is all of them.
type AgentFilter struct {
	Status string // active or revoked
}

// CreateAgent creates an agent. Its secret is in this answer only.
func (o *Organization) CreateAgent(ctx context.Context, p AgentParams) (AgentInfo, error) {
	var made AgentInfo
	p.Scopes = append([]string{}, p.Scopes...) // null would be refused
	err := o.caller.do(ctx, call{method: http.MethodPost, path: "/v1/agents", body: p, effect: once}, &made)
	return made, err
}

// Agent reads an agent.
func (o *Organization) Agent(ctx context.Context, id string) (AgentInfo, error) {
	var info AgentInfo
	err := o.caller.do(ctx, call{method: http.MethodGet, path: agentPath(id)}, &info)
	return info, err
}

// Agents yields the organization's agents, newest first.
func (o *Organization) Agents(ctx context.Context, f AgentFilter) iter.Seq2[AgentInfo, error] {
	return list[AgentInfo](ctx, o.caller, "/v1/agents", agentsPerPage, "status", f.Status)
}

// RevokeAgent ends an agent at once: its secret, its tokens and its open sessions. To revoke it again changes nothing.
func (o *Organization) RevokeAgent(ctx context.Context, id string) error {
	var revoked struct{}
	return o.caller.do(ctx, call{method: http.MethodPost, path: agentPath(id) + "/revoke", effect: repeats}, &revoked)
}

// RotateAgentSecret gives an agent a new secret; the present one stays valid for the grace time, to the second. If the
// answer is lost, so is the new secret: rotate again.
func (o *Organization) RotateAgentSecret(ctx context.Context, id string, grace time.Duration) (RotatedSecret, error) {
	var rotated RotatedSecret
	err := o.caller.do(ctx, call{
		method: http.MethodPost, path: agentPath(id) + "/secret/rotate", body: graceParams{seconds(grace)}, effect: once,
	}, &rotated)
	return rotated, err
}
