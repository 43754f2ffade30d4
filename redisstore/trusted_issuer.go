package redisstore

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	// MostTrustedIssuers is how many trusted issuers an organization may have.
	MostTrustedIssuers = 32
	// MostIssuerRules is the length of a trusted issuer's rules as RulesText writes them, in bytes: each exchange reads them.
	MostIssuerRules = 32 << 10
)

// TrustedIssuer is an issuer whose tokens an organization exchanges for those of its agents.
type TrustedIssuer struct {
	ID       uuid.UUID
	Settings TrustedIssuerSettings

	stored string // the settings as they are stored
}

// Created returns when the trusted issuer was created, by the clock of the instance that did.
func (i TrustedIssuer) Created() time.Time { return madeAt(i.ID) }

// TrustedIssuerSettings are what an organization decides about a trusted issuer.
type TrustedIssuerSettings struct {
	Issuer      string       `json:"issuer"`            // the iss of its tokens, exactly; it never changes
	JWKSURI     string       `json:"jwks_uri,omitzero"` // where its public keys are; "" with JWKS
	JWKS        string       `json:"jwks,omitzero"`     // its public keys, a JSON Web Key Set (RFC 7517 §5); "" with JWKSURI
	Rules       []IssuerRule `json:"rules"`
	Description string       `json:"description,omitzero"`
}

// IssuerRule says which of an issuer's tokens are exchanged for an agent's: those with all of these claims.
type IssuerRule struct {
	Agent  uuid.UUID         `json:"agent_id"`
	Claims map[string]string `json:"claims"` // name to pattern, as token.Assertion.Matches takes it
}

// RulesFor returns the claims of each rule that names the agent.
func (s TrustedIssuerSettings) RulesFor(agent uuid.UUID) []map[string]string {
	var claims []map[string]string
	for _, rule := range s.Rules {
		if rule.Agent == agent {
			claims = append(claims, rule.Claims)
		}
	}
	return claims
}

// agents returns the agents that the rules name, each once.
func (s TrustedIssuerSettings) agents() []uuid.UUID {
	var agents []uuid.UUID
	for _, rule := range s.Rules {
		if !slices.Contains(agents, rule.Agent) {
			agents = append(agents, rule.Agent)
		}
	}
	return agents
}

// RulesText returns the rules as they are stored.
func RulesText(rules []IssuerRule) ([]byte, error) {
	return json.Marshal(rules, json.Deterministic(true))
}

func (s TrustedIssuerSettings) text() (string, error) {
	text, err := json.Marshal(s, json.Deterministic(true))
	return string(text), err
}

func parseTrustedIssuer(id uuid.UUID, text string) (TrustedIssuer, error) {
	i := TrustedIssuer{ID: id, stored: text}
	if err := json.Unmarshal([]byte(text), &i.Settings); err != nil {
		return TrustedIssuer{}, fmt.Errorf("%w: settings of a trusted issuer: %v", errReply, err)
	}
	return i, nil
}

func sortIssuers(issuers []TrustedIssuer) {
	slices.SortFunc(issuers, func(a, b TrustedIssuer) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}

// UnknownAgentsError refuses rules that name agents which are not the organization's.
type UnknownAgentsError struct{ Agents []uuid.UUID }

func (e *UnknownAgentsError) Error() string {
	return "a rule names an agent that the organization does not have"
}
