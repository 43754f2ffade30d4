package redisstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
)

// The operator's operations on organizations need no API key. They scan all keys, so the operator's Redis user needs more
// permissions than the service's; see deploy/redis/users.acl.

// OrganizationUse is an organization as the operator sees it. It counts index entries, some of which may have expired.
type OrganizationUse struct {
	Organization
	Suspension     *kernel.Suspension // nil while it is not suspended
	Agents         int64
	OpenSessions   int64
	ClosedSessions int64
	Transactions   int64
}

// Organizations returns all organizations, oldest first. Errors: ErrUnavailable.
func (s *Store) Organizations(ctx context.Context) ([]OrganizationUse, error) {
	var ids []uuid.UUID
	err := s.core.Walk(ctx, "o", func(_ context.Context, keys []string) error {
		for _, key := range keys {
			if name, valid := s.keys.Parse(key); valid {
				ids = append(ids, name.ID)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	ids = slices.Compact(ids) // a walk may return a key twice
	suspended, err := s.core.SuspensionsNow(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]OrganizationUse, 0, len(ids))
	for chunk := range slices.Chunk(ids, kernel.WalkStep) {
		found, err := s.organizationUses(ctx, chunk, suspended)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// OrganizationUse returns one organization. Errors: ErrUnknownOrganization.
func (s *Store) OrganizationUse(ctx context.Context, id uuid.UUID) (OrganizationUse, error) {
	suspended, err := s.core.SuspensionsNow(ctx)
	if err != nil {
		return OrganizationUse{}, err
	}
	found, err := s.organizationUses(ctx, []uuid.UUID{id}, suspended)
	if err != nil || len(found) == 0 {
		return OrganizationUse{}, cmp.Or(err, ErrUnknownOrganization)
	}
	return found[0], nil
}

// organizationUses omits organizations that do not exist.
func (s *Store) organizationUses(ctx context.Context, ids []uuid.UUID, suspended *kernel.Suspensions) ([]OrganizationUse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	facts := make([]*redis.SliceCmd, len(ids))
	counts := make([][4]*redis.IntCmd, len(ids))
	_, err := s.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			facts[i] = p.HMGet(ctx, s.keys.Organization(id), "name", "metadata", "created")
			for j, index := range []string{s.keys.OrganizationAgents(id), s.keys.OrganizationOpen(id),
				s.keys.OrganizationClosed(id), s.keys.OrganizationTransactions(id)} {
				counts[i][j] = p.ZCard(ctx, index)
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.client.Classify(err, reads)
	}
	var found []OrganizationUse
	for i, id := range ids {
		r := reply{Values: facts[i].Val()}
		if r.Optional(0) == "" {
			continue
		}
		n := counts[i]
		use := OrganizationUse{
			Organization: Organization{ID: id, Name: r.Text(0), Metadata: r.Optional(1), Created: r.Time(2)},
			Agents:       n[0].Val(), OpenSessions: n[1].Val(), ClosedSessions: n[2].Val(), Transactions: n[3].Val(),
		}
		if suspension, yes := suspended.Of[id]; yes {
			use.Suspension = &suspension
		}
		if r.Err != nil {
			return nil, r.Err
		}
		found = append(found, use)
	}
	return found, nil
}

// organizationName returns the name of an organization. Errors: ErrUnknownOrganization.
func (s *Store) organizationName(ctx context.Context, id uuid.UUID) (string, error) {
	answer, err := s.client.Call(ctx, kernel.OwnFlow, reads, "hget", s.keys.Organization(id), "name")
	name, known := answer.(string)
	if err == nil && !known {
		err = ErrUnknownOrganization
	}
	return name, err
}

var replaceAPIKey = kernel.NewScript("identity/replace_api_key", writes)

// ReplaceAPIKey makes fresh the first API key of the organization that it names, and returns when all other keys end: after
// grace. Repeating it with the same key changes nothing. Errors: ErrUnknownOrganization.
func (s *Store) ReplaceAPIKey(ctx context.Context, fresh APIKey, grace time.Duration) (time.Time, error) {
	return timeFrom(s.client.Run(ctx, kernel.OwnFlow, replaceAPIKey, []string{s.keys.Organization(fresh.Organization)}, fresh.Stored(), grace.Milliseconds()))
}

var (
	suspendOrganization = kernel.NewScript("identity/suspend_organization", writes)
	resumeOrganization  = kernel.NewScript("identity/resume_organization", writes)
)

// Suspend suspends an organization and returns since when it is suspended. Each instance refuses the organization after its
// next ReadSuspensions. Errors: ErrUnknownOrganization.
func (s *Store) Suspend(ctx context.Context, organization uuid.UUID) (kernel.Suspension, error) {
	if _, err := s.organizationName(ctx, organization); err != nil {
		return kernel.Suspension{}, err
	}
	return s.suspendAs(ctx, organization, "suspended")
}

func (s *Store) suspendAs(ctx context.Context, organization uuid.UUID, state string) (kernel.Suspension, error) {
	r, err := s.client.Run(ctx, kernel.OwnFlow, suspendOrganization, []string{s.keys.Suspended()}, organization, state)
	if err != nil {
		return kernel.Suspension{}, err
	}
	suspension := kernel.Suspension{Since: r.Time(0), Deleting: r.Text(1) == "deleting"}
	return suspension, r.Err
}

// Resume ends an organization's suspension, and changes nothing if there is none. Errors: ErrUnknownOrganization,
// ErrBeingDeleted.
func (s *Store) Resume(ctx context.Context, organization uuid.UUID) error {
	if _, err := s.organizationName(ctx, organization); err != nil {
		return err
	}
	_, err := s.client.Run(ctx, kernel.OwnFlow, resumeOrganization, []string{s.keys.Suspended()}, organization)
	return err
}
