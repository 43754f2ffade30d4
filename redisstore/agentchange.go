package redisstore

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// AgentChanges changes an agent. A nil field leaves it unchanged.
type AgentChanges struct {
	Name        *string
	Description *string // "" for none
	Metadata    *string // JSON object, "" for none
	Scopes      *[]string
	Audiences   *[]string // nil for any
	// At most one of JWKS and JWKSURI that is not "" may be given. It replaces the other.
	JWKS         *string
	JWKSURI      *string
	DPoPRequired *bool
	Limits       NewAgentLimits
}

var changeAgent = kernel.NewScript("identity/change_agent", writes)

// ChangeAgent changes an agent of the key's organization, and returns it. Scopes that it no longer has are refused from then
// on, whatever its tokens and sessions hold. Errors: ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked, *QuotaError.
func (s *Store) ChangeAgent(ctx context.Context, key APIKey, id uuid.UUID, c AgentChanges) (Agent, error) {
	c = c.withOneSourceOfKeys()
	f := s.core.Proven.Urgent(key) // it may take scopes away
	if _, err := s.core.Authenticate(ctx, f, key); err != nil {
		return Agent{}, err
	}
	held, err := s.core.ReserveIn(f, c.demand(key.Organization))
	if err != nil {
		return Agent{}, s.core.Refusals.Count(err)
	}
	r, err := s.client.Run(ctx, f, changeAgent, []string{s.keys.Agent(id), s.keys.Events(id), s.keys.AgentOpen(id)}, key.Organization,
		settingOf(c.Name), settingOf(c.scopes()), settingOf(c.Description), settingOf(c.Metadata), s.core.AuditAs(ctx, kernel.ActorKey), c.Limits.text(),
		settingOf(c.audiences()), settingOf(c.JWKS), settingOf(c.JWKSURI), settingOf(textIfGiven(c.DPoPRequired, oneIf)))
	if err != nil {
		held.Finish(err, false)
		return Agent{}, err
	}
	held.Finish(nil, true) // what it holds now is known exactly
	changed, err := readAgent(key.Organization, id, r.List(1))
	if err != nil {
		return Agent{}, err
	}
	changed.Usage = usedOf(changed.Limits, changed.counted, r.Time(2), r.Number(3))
	s.noteGrowth(changed, r.List(0))
	return changed, r.Err
}

// withOneSourceOfKeys returns the changes with the other source removed when one of JWKS and JWKSURI is set.
func (c AgentChanges) withOneSourceOfKeys() AgentChanges {
	if c.JWKS != nil && *c.JWKS != "" {
		c.JWKSURI = new("")
	} else if c.JWKSURI != nil && *c.JWKSURI != "" {
		c.JWKS = new("")
	}
	return c
}

// demand is the most that the changes may add. Changes that may take authority away are never refused: those of scopes,
// audiences, keys and dpop_required alone.
func (c AgentChanges) demand(organization uuid.UUID) kernel.Demand {
	var given []string
	for _, text := range []*string{c.Name, c.Description, c.Metadata, c.scopes(), c.audiences(), c.JWKS, c.JWKSURI} {
		if text != nil {
			given = append(given, *text)
		}
	}
	bytes := kernel.Texts(kernel.TableSize, given...)
	return kernel.Demand{
		Organization: organization, Resource: kernel.NoResource, Bytes: bytes, Text: bytes, Events: kernel.EventSize, Unpaced: true,
		Always: c.Name == nil && c.Description == nil && c.Metadata == nil,
	}
}

func (c AgentChanges) scopes() *string {
	return textIfGiven(c.Scopes, func(scopes []string) string { return strings.Join(scopes, " ") })
}

func (c AgentChanges) audiences() *string { return textIfGiven(c.Audiences, audiencesText) }

// textIfGiven returns the text of a field of AgentChanges, nil for one that leaves the agent unchanged.
func textIfGiven[T any](field *T, text func(T) string) *string {
	if field == nil {
		return nil
	}
	return new(text(*field))
}

// noteGrowth counts by how much an agent's texts have grown. before has them as they were.
func (s *Store) noteGrowth(a Agent, before *reply) {
	was := kernel.Texts(kernel.TableSize, before.Optional(0), before.Optional(1), before.Optional(2), before.Optional(3),
		before.Optional(4), before.Optional(5), before.Optional(6))
	grown := kernel.Texts(kernel.TableSize, a.Name, strings.Join(a.Scopes, " "), a.Description, a.Metadata,
		audiencesText(a.Audiences), a.JWKS, a.JWKSURI) - was
	s.core.Usage.Note(a.Organization, func(c *kernel.Changes, unsent *kernel.Quantities) {
		c.AgentBytes += grown
		c.EventBytes += kernel.EventSize
		unsent[kernel.BytesHeld] += grown
	})
}

// settingOf returns a text as change_agent.lua takes it.
func settingOf(text *string) string {
	if text == nil {
		return ""
	}
	return "=" + *text
}
