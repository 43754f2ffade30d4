package redisstore

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

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
