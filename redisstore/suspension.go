package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisclient"
)

// Suspension is what the operator has decided about an organization.
type Suspension struct {
	Since    time.Time
	Deleting bool // its deletion has begun: it never resumes
}

// suspensions are the suspended organizations as an instance has read them last. It is never changed.
type suspensions struct {
	version string
	of      map[uuid.UUID]Suspension
}

var (
	suspendOrganization = newScript("suspend_organization", writes)
	resumeOrganization  = newScript("resume_organization", writes)
)

// versionField is the field of k:suspended that changes with every change. Ids are 16 bytes.
const versionField = "version"

// ReadSuspensions reads which organizations are suspended, if that has changed since it was read last. From then on the
// store refuses them with ErrOrganizationSuspended.
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

// suspensionsNow returns the suspensions as they stand in Redis.
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

// parseSuspension reads a record. One that it does not understand suspends all the same, and keeps no other from being read.
func parseSuspension(text string) Suspension {
	since, state, _ := strings.Cut(text, " ")
	ms, err := strconv.ParseInt(since, 10, 64)
	if err != nil || ms < 0 || ms > redisclient.MaxTime {
		return Suspension{}
	}
	return Suspension{Since: time.UnixMilli(ms), Deleting: state == "deleting"}
}

// Suspended says whether the organization was suspended when that was read last.
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

// refuseSuspended refuses a good API key of a suspended organization. It checks the key first: a stranger must not learn
// from a made-up key that an organization is suspended.
func (s *Store) refuseSuspended(ctx context.Context, key APIKey, f flow) error {
	if s.config.FollowsSuspensions && s.suspended.Load() == nil {
		return fmt.Errorf("%w: the suspended organizations are not known yet", ErrUnavailable)
	}
	if !s.Suspended(key.Organization) {
		return nil
	}
	_, err := s.client.Run(ctx, f, authenticateOrganization, []string{s.keys.organization(key.Organization)}, key.Hash)
	if s.proven.note(key, err); err != nil {
		return err
	}
	return ErrOrganizationSuspended
}

// Suspend suspends an organization and returns since when it is. Each instance refuses it once it has read so. Errors:
// ErrUnknownOrganization.
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

// Resume ends an organization's suspension. One that is not suspended stays as it is. Errors: ErrUnknownOrganization,
// ErrBeingDeleted.
func (s *Store) Resume(ctx context.Context, organization uuid.UUID) error {
	if _, err := s.organizationName(ctx, organization); err != nil {
		return err
	}
	_, err := s.client.Run(ctx, ownFlow, resumeOrganization, []string{s.keys.suspended()}, organization)
	return err
}
