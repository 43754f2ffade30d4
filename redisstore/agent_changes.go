package redisstore

import (
	"context"
	"strings"

	"github.com/google/uuid"
)

// AgentChanges changes an agent. A nil field leaves it unchanged.
type AgentChanges struct {
	Name        *string
	Description *string // "" for none
	Metadata    *string // JSON object, "" for none
	Scopes      *[]string
}

var changeAgent = newScript("change_agent", writes)

// ChangeAgent changes an agent of the key's organization, and returns it. Scopes that it no longer has are refused from then
// on, whatever its tokens and sessions hold. Errors: ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked, *QuotaError.
func (s *Store) ChangeAgent(ctx context.Context, key APIKey, id uuid.UUID, c AgentChanges) (Agent, error) {
	f := s.proven.urgent(key) // it may take scopes away
	if _, err := s.authenticate(ctx, f, key); err != nil {
		return Agent{}, err
	}
	held, err := s.reserveIn(f, c.demand(key.Organization))
	if err != nil {
		return Agent{}, s.refusals.count(err)
	}
	r, err := s.client.Run(ctx, f, changeAgent, []string{s.keys.agent(id), s.keys.events(id)}, key.Organization,
		settingOf(c.Name), settingOf(c.scopes()), settingOf(c.Description), settingOf(c.Metadata), s.auditAs(ctx, actorKey))
	if err != nil {
		held.finish(err, false)
		return Agent{}, err
	}
	held.finish(nil, true) // what it holds now is known exactly
	changed, err := readAgent(key.Organization, id, r.List(1))
	if err != nil {
		return Agent{}, err
	}
	s.noteGrowth(changed, r.List(0))
	return changed, r.Err
}

// demand is the most that the changes may add. Changes of scopes alone are never refused: they may take authority away.
func (c AgentChanges) demand(organization uuid.UUID) demand {
	var given []string
	for _, text := range []*string{c.Name, c.Description, c.Metadata, c.scopes()} {
		if text != nil {
			given = append(given, *text)
		}
	}
	bytes := texts(tableSize, given...)
	return demand{
		organization: organization, resource: noResource, bytes: bytes, text: bytes, events: eventSize, unpaced: true,
		always: c.Name == nil && c.Description == nil && c.Metadata == nil,
	}
}

func (c AgentChanges) scopes() *string {
	if c.Scopes == nil {
		return nil
	}
	joined := strings.Join(*c.Scopes, " ")
	return &joined
}

// noteGrowth counts by how much an agent's texts have grown. before has its name, scopes, description and metadata as they
// were.
func (s *Store) noteGrowth(a Agent, before *reply) {
	was := texts(tableSize, before.Optional(0), before.Optional(1), before.Optional(2), before.Optional(3))
	grown := texts(tableSize, a.Name, strings.Join(a.Scopes, " "), a.Description, a.Metadata) - was
	s.usage.note(a.Organization, func(c *changes, unsent *quantities) {
		c.agentBytes += grown
		c.eventBytes += eventSize
		unsent[bytesHeld] += grown
	})
}

// settingOf returns a text as change_agent.lua takes it.
func settingOf(text *string) string {
	if text == nil {
		return ""
	}
	return "=" + *text
}
