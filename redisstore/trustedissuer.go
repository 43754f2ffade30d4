package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
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
func (i TrustedIssuer) Created() time.Time { return kernel.MadeAt(i.ID) }

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

// UnknownAgentsError refuses rules that name agents which are not the organization's.
type UnknownAgentsError struct{ Agents []uuid.UUID }

func (e *UnknownAgentsError) Error() string {
	return "a rule names an agent that the organization does not have"
}

var (
	putTrustedIssuer     = kernel.NewSealedScript("identity/put_trusted_issuer")
	replaceTrustedIssuer = kernel.NewScript("identity/replace_trusted_issuer", writes)
	getTrustedIssuer     = kernel.NewScript("identity/get_trusted_issuer", reads)
	listTrustedIssuers   = kernel.NewScript("identity/list_trusted_issuers", reads)
	deleteTrustedIssuer  = kernel.NewScript("identity/delete_trusted_issuer", writes)
)

// CreateTrustedIssuer makes the organization trust an issuer, from now on. idem is nil for no idempotency key. Errors:
// ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended, *UnknownAgentsError, ErrIssuerExists, *QuotaError; with an idempotency
// key ErrIdempotencyKeyReused, *RateError.
func (s *Store) CreateTrustedIssuer(ctx context.Context, key APIKey, settings TrustedIssuerSettings, idem *Idempotency) (TrustedIssuer, error) {
	text, err := settings.text()
	if err != nil {
		return TrustedIssuer{}, err
	}
	if err := s.checkAgents(ctx, key, settings.agents()); err != nil {
		return TrustedIssuer{}, err
	}
	if idem != nil {
		idem.Seal = kernel.Unsealed{} // the answer has no credential
	}
	r, err := s.core.RunSealedByKey(ctx, key, putTrustedIssuer, idem, kernel.IssuerSize+int64(len(settings.Issuer)+len(text)), s.issuerKeys(key.Organization),
		key.Credential(), NewID(key.Organization), settings.Issuer, text, MostTrustedIssuers)
	if err != nil {
		return TrustedIssuer{}, err
	}
	return TrustedIssuer{ID: r.ID(0), Settings: settings, stored: text}, r.Err
}

// checkAgents returns *UnknownAgentsError for agents that are not the organization's. One that is deleted afterwards gets no
// tokens, whatever a rule says.
func (s *Store) checkAgents(ctx context.Context, key APIKey, agents []uuid.UUID) error {
	if len(agents) == 0 {
		return nil
	}
	if _, err := s.core.Authenticate(ctx, s.core.Proven.Flow(key), key); err != nil { // before anything is read for the caller
		return err
	}
	found, err := s.loadAgents(ctx, key.Organization, agents, listedAgentFields)
	if err != nil {
		return err
	}
	var unknown []uuid.UUID
	for i, agent := range found {
		if agent == nil {
			unknown = append(unknown, agents[i])
		}
	}
	if unknown != nil {
		return &UnknownAgentsError{unknown}
	}
	return nil
}

// TrustedIssuers returns all trusted issuers of the key's organization, the oldest first. Errors: ErrInvalidAPIKey,
// ErrOrganizationSuspended.
func (s *Store) TrustedIssuers(ctx context.Context, key APIKey) ([]TrustedIssuer, error) {
	r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), listTrustedIssuers, s.issuerKeys(key.Organization)[:2], key.Credential())
	if err != nil {
		return nil, err
	}
	stored := r.List(0)
	issuers := make([]TrustedIssuer, 0, len(stored.Values)/2)
	for i := 0; i+1 < len(stored.Values); i += 2 {
		issuer, err := parseTrustedIssuer(stored.ID(i), stored.Text(i+1))
		if err != nil {
			return nil, err
		}
		issuers = append(issuers, issuer)
	}
	slices.SortFunc(issuers, func(a, b TrustedIssuer) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return issuers, stored.Err
}

// TrustedIssuer returns one trusted issuer. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrUnknownIssuer.
func (s *Store) TrustedIssuer(ctx context.Context, key APIKey, id uuid.UUID) (TrustedIssuer, error) {
	r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), getTrustedIssuer, s.issuerKeys(key.Organization)[:2], key.Credential(), id)
	if err != nil {
		return TrustedIssuer{}, err
	}
	text := r.Text(0)
	if r.Err != nil {
		return TrustedIssuer{}, r.Err
	}
	return parseTrustedIssuer(id, text)
}

// ChangeTrustedIssuer stores what change makes of a trusted issuer's settings except its name, and runs it again when another request
// else has changed them meanwhile. Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended, ErrUnknownIssuer,
// *UnknownAgentsError, *QuotaError, ErrChangedMeanwhile after a few times; and those of change.
func (s *Store) ChangeTrustedIssuer(ctx context.Context, key APIKey, id uuid.UUID, change func(*TrustedIssuerSettings) error) (TrustedIssuer, error) {
	for attempt := 0; ; attempt++ {
		i, err := s.TrustedIssuer(ctx, key, id)
		if err != nil {
			return TrustedIssuer{}, err
		}
		before := i.Settings.agents()
		if err := change(&i.Settings); err != nil {
			return TrustedIssuer{}, err
		}
		added := slices.DeleteFunc(i.Settings.agents(), func(agent uuid.UUID) bool { return slices.Contains(before, agent) })
		if err := s.checkAgents(ctx, key, added); err != nil {
			return TrustedIssuer{}, err
		}
		text, err := i.Settings.text()
		if err != nil {
			return TrustedIssuer{}, err
		}
		_, err = s.core.RunCounted(ctx, key, s.core.Proven.Flow(key), replaceTrustedIssuer, int64(len(text)-len(i.stored)),
			s.issuerKeys(key.Organization)[:2], key.Credential(), id, i.stored, text)
		if err != ErrChangedMeanwhile || attempt == kernel.MaxChangeAttempts {
			i.stored = text
			return i, err
		}
	}
}

// DeleteTrustedIssuer ends the trust in an issuer: no later exchange takes its tokens. Errors: ErrInvalidAPIKey, *RoleError,
// ErrOrganizationSuspended, ErrUnknownIssuer.
func (s *Store) DeleteTrustedIssuer(ctx context.Context, key APIKey, id uuid.UUID) error {
	i, err := s.TrustedIssuer(ctx, key, id)
	if err != nil {
		return err
	}
	_, err = s.core.RunByKey(ctx, key, s.core.Proven.Urgent(key), deleteTrustedIssuer, s.issuerKeys(key.Organization),
		key.Credential(), id, i.Settings.Issuer)
	s.core.NoteFreed(key.Organization, err)
	return err
}

// issuerKeys are the organization, its trusted issuers and their names.
func (s *Store) issuerKeys(organization uuid.UUID) []string {
	return []string{s.keys.Organization(organization), s.keys.TrustedIssuers(organization), s.keys.IssuerNames(organization)}
}
