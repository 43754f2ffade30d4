package kernel

import (
	"context"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

var (
	ListOrganization = NewScript("identity/list_organization", redisclient.Reads)
	ListOfAgent      = NewScript("budgets/list_of_agent", redisclient.Reads)
)

// LateIndex returns the organization's index with this key, and the key of its suspects.
func (s *Core) LateIndex(organization uuid.UUID, key, suspects func(uuid.UUID) string) *lateIndex {
	return &lateIndex{organization, key(organization), suspects(organization)}
}

// ReadOrganizationIndex returns what reads a page of an organization's index.
func (s *Core) ReadOrganizationIndex(key APIKey, index string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.RunByKey(ctx, key, s.Proven.Flow(key), ListOrganization, []string{s.Keys.Organization(key.Organization), index},
			key.Credential(), Members{}.Below(before), limit)
		return Members{}.Page(r, err)
	}
}

// ReadAgentIndex returns what reads a page of an index in the actor's cell.
func (s *Core) ReadAgentIndex(act Actor, index string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	m := OfCell(act.Agent)
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.Client.Run(ctx, act.Flow, ListOfAgent, []string{s.Keys.Agent(act.Agent), index},
			act.Organization, act.Family, m.Below(before), limit)
		if act.Family != "" {
			err = act.ErrorFor(err)
		}
		return m.Page(r, err)
	}
}
