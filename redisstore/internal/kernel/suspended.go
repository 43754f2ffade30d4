package kernel

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

// VersionField is the field of k:suspended that changes with every change. Ids are 16 bytes.
const VersionField = "version"

// Suspension is the operator's suspension of an organization.
type Suspension struct {
	Since    time.Time
	Deleting bool // its deletion has begun, so it can never resume
}

// Suspensions are the suspended organizations at an instance's last read. They are immutable.
type Suspensions struct {
	version string
	Of      map[uuid.UUID]Suspension
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
func (s *Core) Suspended(organization uuid.UUID) bool {
	known := s.suspended.Load()
	if known == nil {
		return false
	}
	_, suspended := known.Of[organization]
	return suspended
}

// AnySuspended says whether any organization was suspended at the last ReadSuspensions.
func (s *Core) AnySuspended() bool {
	known := s.suspended.Load()
	return known != nil && len(known.Of) > 0
}

// ReadSuspensions reads which organizations are suspended, if that has changed since the last read. From then on the store
// refuses them with ErrOrganizationSuspended. Errors: ErrUnavailable.
func (s *Core) ReadSuspensions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	last := s.suspended.Load()
	version, err := s.Client.Redis().HGet(ctx, s.Keys.Suspended(), VersionField).Result()
	if err != nil && err != redis.Nil {
		return s.Client.Classify(err, redisclient.Reads)
	}
	if last != nil && last.version == version {
		return nil
	}
	read, err := s.SuspensionsNow(ctx)
	if err == nil {
		s.suspended.Store(read)
	}
	return err
}

// SuspensionsNow returns the suspensions in Redis.
func (s *Core) SuspensionsNow(ctx context.Context) (*Suspensions, error) {
	fields, err := s.Client.Redis().HGetAll(ctx, s.Keys.Suspended()).Result()
	if err != nil {
		return nil, s.Client.Classify(err, redisclient.Reads)
	}
	read := &Suspensions{version: fields[VersionField], Of: map[uuid.UUID]Suspension{}}
	for field, text := range fields {
		id, err := uuid.FromBytes([]byte(field))
		if err != nil {
			continue // the version
		}
		read.Of[id] = parseSuspension(text)
	}
	return read, nil
}
