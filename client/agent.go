package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// Agent calls the service as one agent and renews its tokens itself. Keep one for the life of the process: each new Agent
// exchanges its credential again.
type Agent struct {
	id     string
	caller *caller
}

// ID returns the agent's id.
func (a *Agent) ID() string { return a.id }

// Token returns a valid access token for other requests, such as those through a proxy. Call it before each use instead of
// keeping the token. Those of an agent with a DPoP key also need a proof: see Prove.
func (a *Agent) Token(ctx context.Context) (string, error) {
	if a.caller.tokens == nil {
		return a.caller.bearer.reveal(), nil
	}
	return a.caller.tokens.get(ctx, "")
}

// Refresh replaces the access token now. The previous one stays valid until it expires.
func (a *Agent) Refresh(ctx context.Context) error {
	if a.caller.tokens == nil {
		return errNotRenewable{}
	}
	_, err := a.caller.tokens.renew(ctx)
	return err
}

// Session returns the agent's session with this id. It sends nothing.
func (a *Agent) Session(id string) *Session { return &Session{id: id, agent: a.id, caller: a.caller} }

// Sessions yields the agent's sessions, newest first. It needs no AgentID in the filter.
func (a *Agent) Sessions(ctx context.Context, f SessionFilter) iter.Seq2[SessionSummary, error] {
	return a.caller.sessions(ctx, f)
}

// ChargeMany makes up to 500 charges in one request, each all or nothing, and returns their results in the same order. Its
// error is nil whenever there are results, even if every charge was refused.
func (a *Agent) ChargeMany(ctx context.Context, charges []SessionCharge, options BatchOptions) ([]Result, error) {
	return a.caller.chargeMany(ctx, charges, options)
}

// Begin begins a transaction without a session: it records a prior state and an outcome, and holds no value.
func (a *Agent) Begin(ctx context.Context, p TransactionParams) (*Transaction, error) {
	return a.caller.begin(ctx, p.body(""), p.IdempotencyKey)
}

// Transaction returns the agent's transaction with this id. It sends nothing.
func (a *Agent) Transaction(id string) *Transaction { return openTransaction(a.caller, id) }

// Transactions yields the agent's transactions, newest first, without their states and metadata.
func (a *Agent) Transactions(ctx context.Context, f TransactionFilter) iter.Seq2[TransactionInfo, error] {
	return a.caller.transactions(ctx, f)
}

// Events yields the agent's audit trail, oldest first. It starts after the event with the given id, or with the oldest event
// kept if that is empty, and waits for new events at the end. It resumes after a break, also when the service is unavailable for
// long. It ends when the ctx does, or when the service refuses it, and then yields the error. After a restart of your program,
// call it with the id of the last event that you have processed.
func (a *Agent) Events(ctx context.Context, after string) iter.Seq2[Event, error] {
	return a.caller.events(ctx, a.id, after, eventWait)
}

// ListEvents yields the audit trail as Events does, without waiting for new events.
func (a *Agent) ListEvents(ctx context.Context, after string) iter.Seq2[Event, error] {
	return a.caller.events(ctx, a.id, after, 0)
}

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
	p.Scopes = append([]string{}, p.Scopes...) // null would be refused
	p.Metadata = asGiven(p.Metadata)
	body := struct {
		AgentParams
		Limits any   `json:"limits,omitzero"`
		Secret *bool `json:"secret,omitzero"`
	}{AgentParams: p, Limits: p.Limits.sent()}
	if p.NoSecret {
		body.Secret = new(false)
	}
	if p.Audiences != nil {
		body.Audiences = new(append([]string{}, *p.Audiences...)) // null would be refused
	}
	return decoded[AgentInfo](ctx, o.caller, o.caller.client.keyed("/v1/agents", p.IdempotencyKey, body))
}

// GetAgent reads an agent.
func (o *Organization) GetAgent(ctx context.Context, id string) (AgentInfo, error) {
	return decoded[AgentInfo](ctx, o.caller, call{method: http.MethodGet, path: agentPath(id)})
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
	body := struct {
		Grace          int64 `json:"grace_seconds,omitzero"`
		RevokeFamilies bool  `json:"revoke_families,omitzero"`
	}{seconds(p.Grace), p.RevokeFamilies}
	return decoded[RotatedSecret](ctx, o.caller, o.caller.client.keyed(agentPath(id)+"/secret/rotate", p.IdempotencyKey, body))
}

// Family is all refresh tokens that descend from one exchange of an agent's secret.
type Family struct {
	ID         string    `json:"family_id"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Families yields an agent's live families, newest first. A family that no client of yours opened may be a thief's.
func (o *Organization) Families(ctx context.Context, agentID string) iter.Seq2[Family, error] {
	return list[Family](ctx, o.caller, agentPath(agentID)+"/families", perPage)
}

// RevokeFamily ends a family at once, with its access tokens. Revoking it again has no effect.
func (o *Organization) RevokeFamily(ctx context.Context, agentID, familyID string) error {
	var revoked struct{}
	return o.caller.do(ctx, call{method: http.MethodDelete, path: familyPath(agentID, familyID), semantics: idempotent}, &revoked)
}
