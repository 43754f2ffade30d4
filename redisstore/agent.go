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

	Audiences    []string // that its tokens may be for, besides the issuer; nil for any
	JWKS         string   // JSON Web Key Set of the keys it signs assertions with, "" for none; not with JWKSURI
	JWKSURI      string   // where it publishes them, "" for none
	DPoPRequired bool     // its tokens must be bound to a key (RFC 9449)
	NoSecret     bool     // it has no secret

	Limits AgentLimits
	Usage  AgentUsage // of Limits; not in lists

	counted countedDay
}

// Status returns Active or Revoked.
func (a *Agent) Status() Status {
	if a.Revoked.IsZero() {
		return Active
	}
	return Revoked
}
