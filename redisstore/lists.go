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
