package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
)

var (
	listOrganization = newScript("identity/list_organization", reads)
	listOfAgent      = newScript("budgets/list_of_agent", reads)
)

// Agents returns a page of the organization's agents, newest first. Errors: ErrInvalidAPIKey.
func (s *Store) Agents(ctx context.Context, key APIKey, q Query) (Page[Agent], error) {
	ix := index[Agent]{
		key:  s.keys.organizationAgents(key.Organization),
		late: s.lateIndex(key.Organization, s.keys.organizationAgents, s.keys.suspectAgents),
		read: s.readOrganizationIndex(key, s.keys.organizationAgents(key.Organization)),
		load: func(ctx context.Context, ids []uuid.UUID, _ time.Time) ([]*Agent, error) {
			return s.loadAgents(ctx, key.Organization, ids, listedAgentFields)
		},
		id:      func(a *Agent) uuid.UUID { return a.ID },
		matches: func(a *Agent) bool { return q.Status == "" || a.Status() == q.Status },
	}
	return page(ctx, s, ix, q)
}

// Sessions returns a page of the sessions that the caller may see, newest first. Errors: ErrInvalidAPIKey or
// ErrInvalidToken; ErrUnknownAgent when the query names an agent that the caller may not see.
func (s *Store) Sessions(ctx context.Context, c Caller, q Query) (Page[SessionSummary], error) {
	var ix index[SessionSummary]
	switch {
	case c.Token != nil && q.Agent == uuid.Nil:
		q.Agent = c.Token.Agent
		fallthrough
	case q.Agent != uuid.Nil:
		act, err := s.actOnAgent(ctx, c, q.Agent, nil)
		if err != nil {
			return Page[SessionSummary]{}, err
		}
		ix = s.sessionsOf(act)
		ix.read = s.readAgentIndex(act, ix.key)
	case q.Status == Active:
		ix = s.openSessions(c.Key.Organization)
		ix.read = s.readActiveSessions(*c.Key)
	default:
		ix = s.closedSessions(c.Key.Organization)
		ix.read = s.readAllSessions(*c.Key)
	}
	ix.id = func(v *SessionSummary) uuid.UUID { return v.ID }
	ix.matches = func(v *SessionSummary) bool { return q.Status == "" || v.Status == q.Status }
	return page(ctx, s, ix, q)
}

func (s *Store) lateIndex(organization uuid.UUID, key, suspects func(uuid.UUID) string) *lateIndex {
	return &lateIndex{organization, key(organization), suspects(organization)}
}

func (s *Store) readOrganizationIndex(key APIKey, index string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.runByKey(ctx, key, s.proven.flow(key), listOrganization, []string{s.keys.organization(key.Organization), index},
			key.credential(), members{}.below(before), limit)
		return members{}.page(r, err)
	}
}

func (s *Store) readAgentIndex(act actor, index string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	m := ofCell(act.agent)
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.client.Run(ctx, act.flow, listOfAgent, []string{s.keys.agent(act.agent), index},
			act.organization, act.family, m.below(before), limit)
		if act.family != "" {
			err = act.errorFor(err)
		}
		return m.page(r, err)
	}
}
