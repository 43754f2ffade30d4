package redisstore

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

var (
	suspendOrganization = newScript("identity/suspend_organization", writes)
	resumeOrganization  = newScript("identity/resume_organization", writes)
)

// versionField is the field of k:suspended that changes with every change. Ids are 16 bytes.
const versionField = "version"

// Suspension is the operator's suspension of an organization.
type Suspension struct {
	Since    time.Time
	Deleting bool // its deletion has begun, so it can never resume
}

// suspensions are the suspended organizations at an instance's last read. They are immutable.
type suspensions struct {
	version string
	of      map[uuid.UUID]Suspension
}

// parseSuspension reads a record. An invalid record still suspends its organization, and does not affect the others.
func parseSuspension(text string) Suspension {
	since, state, _ := strings.Cut(text, " ")
	ms, err := strconv.ParseInt(since, 10, 64)
	if err != nil || ms < 0 || ms > redisclient.MaxTime {
		return Suspension{}
	}
	return Suspension{Since: time.UnixMilli(ms), Deleting: state == "deleting"}
}

// Suspended says whether the organization was suspended at the last ReadSuspensions.
func (s *Store) Suspended(organization uuid.UUID) bool {
	known := s.suspended.Load()
	if known == nil {
		return false
	}
	_, suspended := known.of[organization]
	return suspended
}

func (s *Store) anySuspended() bool {
	known := s.suspended.Load()
	return known != nil && len(known.of) > 0
}

// ReadSuspensions reads which organizations are suspended, if that has changed since the last read. From then on the store
// refuses them with ErrOrganizationSuspended. Errors: ErrUnavailable.
func (s *Store) ReadSuspensions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	last := s.suspended.Load()
	version, err := s.client.Redis().HGet(ctx, s.keys.suspended(), versionField).Result()
	if err != nil && err != redis.Nil {
		return s.client.Classify(err, reads)
	}
	if last != nil && last.version == version {
		return nil
	}
	read, err := s.suspensionsNow(ctx)
	if err == nil {
		s.suspended.Store(read)
	}
	return err
}

// suspensionsNow returns the suspensions in Redis.
func (s *Store) suspensionsNow(ctx context.Context) (*suspensions, error) {
	fields, err := s.client.Redis().HGetAll(ctx, s.keys.suspended()).Result()
	if err != nil {
		return nil, s.client.Classify(err, reads)
	}
	read := &suspensions{version: fields[versionField], of: map[uuid.UUID]Suspension{}}
	for field, text := range fields {
		id, err := uuid.FromBytes([]byte(field))
		if err != nil {
			continue // the version
		}
		read.of[id] = parseSuspension(text)
	}
	return read, nil
}

// Suspend suspends an organization and returns since when it is suspended. Each instance refuses the organization after its
// next ReadSuspensions. Errors: ErrUnknownOrganization.
func (s *Store) Suspend(ctx context.Context, organization uuid.UUID) (Suspension, error) {
	if _, err := s.organizationName(ctx, organization); err != nil {
		return Suspension{}, err
	}
	return s.suspendAs(ctx, organization, "suspended")
}

func (s *Store) suspendAs(ctx context.Context, organization uuid.UUID, state string) (Suspension, error) {
	r, err := s.client.Run(ctx, ownFlow, suspendOrganization, []string{s.keys.suspended()}, organization, state)
	if err != nil {
		return Suspension{}, err
	}
	suspension := Suspension{Since: r.Time(0), Deleting: r.Text(1) == "deleting"}
	return suspension, r.Err
}

// Resume ends an organization's suspension, and changes nothing if there is none. Errors: ErrUnknownOrganization,
// ErrBeingDeleted.
func (s *Store) Resume(ctx context.Context, organization uuid.UUID) error {
	if _, err := s.organizationName(ctx, organization); err != nil {
		return err
	}
	_, err := s.client.Run(ctx, ownFlow, resumeOrganization, []string{s.keys.suspended()}, organization)
	return err
}
