package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"remit/money"
)

// NoLimit removes a limit: in AgentLimits, as MaxValuePerAction of SessionLimits.
const NoLimit = -1

// AgentLimits bound an agent over all of its sessions. In AgentInfo nil means no limit. In AgentParams and AgentChanges nil leaves a
// limit as it is, and a pointer to NoLimit removes it.
type AgentLimits struct {
	MaxValuePerDay      *money.MicroUSD `json:"max_value_usd_per_day"`  // of a UTC day; 0 is a limit
	MaxActionsPerMinute *int64          `json:"max_actions_per_minute"` // 1 to 1,000,000
	MaxOpenSessions     *int64          `json:"max_open_sessions"`      // 0 to 1,000,000
}

// AgentUsage is what is used of an agent's limits. Nothing is counted for a limit that the agent does not have.
type AgentUsage struct {
	ValueUsedToday *money.MicroUSD `json:"value_used_usd_today"` // of the UTC day; nil: no limit per day
	ResetsAt       *time.Time      `json:"resets_at"`            // the end of the day; nil: no limit per day
	OpenSessions   *int64          `json:"open_sessions"`        // nil: no limit of open sessions
}

// sent returns the limits for a body: without those that stay, and with null for those that are removed.
func (l AgentLimits) sent() any {
	if l == (AgentLimits{}) {
		return nil
	}
	return struct {
		MaxActionsPerMinute any `json:"max_actions_per_minute,omitzero"`
		MaxOpenSessions     any `json:"max_open_sessions,omitzero"`
		MaxValuePerDay      any `json:"max_value_usd_per_day,omitzero"`
	}{limitOrNull(l.MaxActionsPerMinute), limitOrNull(l.MaxOpenSessions), limitOrNull(l.MaxValuePerDay)}
}

// limitOrNull returns a limit for a body: nil for one that stays, and null for one that is removed.
func limitOrNull[T int64 | money.MicroUSD](limit *T) any {
	switch {
	case limit == nil:
		return nil
	case *limit == NoLimit:
		return json.RawMessage("null")
	}
	return *limit
}

// AgentChanges change an agent. Omitted fields stay.
type AgentChanges struct {
	Name        string      `json:"name,omitzero"`        // empty: omitted
	Description *string     `json:"description,omitzero"` // nil: omitted
	Metadata    any         `json:"metadata,omitzero"`    // a JSON object of at most 16 KiB; nil: omitted
	Scopes      *[]string   `json:"scopes,omitzero"`      // at most 64; nil: omitted
	Limits      AgentLimits `json:"-"`

	JWKS         json.RawMessage `json:"-"` // as in AgentParams; it replaces JWKSURI, and the other way round
	JWKSURI      string          `json:"-"`
	Audiences    *[]string       `json:"-"`                      // for new tokens; nil: omitted; empty: the service alone
	DPoPRequired *bool           `json:"dpop_required,omitzero"` // nil: omitted; true also refuses the tokens that are not bound

	Remove []string `json:"-"` // of jwks, jwks_uri and audiences: those that the agent is to have no more
}

// UpdateAgent changes an agent. A scope that it loses is refused from now on, whatever its tokens and sessions say. A new limit
// counts from now on.
func (o *Organization) UpdateAgent(ctx context.Context, id string, c AgentChanges) (AgentInfo, error) {
	body, err := c.body()
	if err != nil {
		return AgentInfo{}, err
	}
	return decoded[AgentInfo](ctx, o.caller, call{method: http.MethodPatch, path: agentPath(id), body: body, semantics: idempotent})
}

// agentChangesBody is AgentChanges on the wire.
type agentChangesBody struct {
	AgentChanges
	Limits    any `json:"limits,omitzero"`
	JWKS      any `json:"jwks,omitzero"`
	JWKSURI   any `json:"jwks_uri,omitzero"`
	Audiences any `json:"audiences,omitzero"`
}

func (c AgentChanges) body() (agentChangesBody, error) {
	body := agentChangesBody{AgentChanges: c, Limits: c.Limits.sent()}
	body.Metadata = asGiven(c.Metadata)
	if c.Scopes != nil {
		body.Scopes = new(append([]string{}, *c.Scopes...)) // null would be refused
	}
	if c.Audiences != nil {
		body.Audiences = append([]string{}, *c.Audiences...) // null removes them
	}
	if c.JWKS != nil {
		body.JWKS = c.JWKS
	}
	if c.JWKSURI != "" {
		body.JWKSURI = c.JWKSURI
	}
	for _, name := range c.Remove {
		switch null := json.RawMessage("null"); name {
		case "jwks":
			body.JWKS = null
		case "jwks_uri":
			body.JWKSURI = null
		case "audiences":
			body.Audiences = null
		default:
			return body, fmt.Errorf("remit: %q cannot be removed from an agent: jwks, jwks_uri and audiences can", name)
		}
	}
	return body, nil
}
