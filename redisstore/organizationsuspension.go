package redisstore

import (
	"context"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

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
