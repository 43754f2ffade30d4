package server

import (
	"cmp"
	"net/netip"
	"time"
)

// Limits bound what a client address may cost Redis without a credential. They are kept in this process: each of
// several instances has its own.
type Limits struct {
	// Off admits everything.
	Off bool
	// OrganizationsPerMinute is how many organizations an address may create. 0 means 300.
	OrganizationsPerMinute int
	// FailedAuthPerMinute is how many exchanges and refreshes of an agent may fail at an address, together. 0 means 600. An
	// address may try ten times as many secrets, of all agents together.
	FailedAuthPerMinute int
}

// limits are those of a server; nil ones are off.
type limits struct {
	organizations *rateLimiter[netip.Addr]
	failedAuth    *authLimiter
}

func newLimits(cfg Limits, now func() time.Time) limits {
	if cfg.Off {
		return limits{}
	}
	return limits{
		organizations: newRateLimiter[netip.Addr]("organizations", cmp.Or(cfg.OrganizationsPerMinute, defaultOrganizations), maxAddresses, now),
		failedAuth:    newAuthLimiter(cmp.Or(cfg.FailedAuthPerMinute, defaultFailedAuth), now),
	}
}
