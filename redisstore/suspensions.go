package redisstore

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
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

// parseSuspension reads a record. One that it does not understand still suspends, and does not prevent reading the others.
func parseSuspension(text string) Suspension {
	since, state, _ := strings.Cut(text, " ")
	ms, err := strconv.ParseInt(since, 10, 64)
	if err != nil || ms < 0 || ms > redisclient.MaxTime {
		return Suspension{}
	}
	return Suspension{Since: time.UnixMilli(ms), Deleting: state == "deleting"}
}

// Suspended reports whether the organization was suspended when suspensions were last read.
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
