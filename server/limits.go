package server

import (
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
	organizations *keyedLimit[netip.Addr]
	failedAuth    *authLimit
}

func newLimits(cfg Limits, now func() time.Time) limits {
	if cfg.Off {
		return limits{}
	}
	return limits{
		organizations: newKeyedLimit[netip.Addr]("organizations", orDefault(cfg.OrganizationsPerMinute, defaultOrganizations), maxAddresses, now),
		failedAuth:    newAuthLimit(orDefault(cfg.FailedAuthPerMinute, defaultFailedAuth), now),
	}
}

func orDefault(given, usual int) int {
	if given > 0 {
		return given
	}
	return usual
}
