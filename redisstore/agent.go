package redisstore

import (
	"time"

	"github.com/google/uuid"
)

// Agent is a machine identity of one organization.
type Agent struct {
	ID           uuid.UUID
	Organization uuid.UUID
	Name         string
	Scopes       []string
	Description  string
	Metadata     string // JSON object, "" for none
	Created      time.Time
	Revoked      time.Time // zero while it is active

	Suspended        time.Time // since when; zero while it is not
	SuspensionReason string    // "" for none
}

// Status returns Active or Revoked.
func (a *Agent) Status() Status {
	if a.Revoked.IsZero() {
		return Active
	}
	return Revoked
}
