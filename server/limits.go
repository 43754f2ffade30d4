package server

import (
	"cmp"
	"net/netip"
	"time"

	"remit/server/internal/access"
)

// Limits bound what one client address may cost Redis without a valid credential. Each instance of the service counts for
// itself.
type Limits struct {
	// Off switches all limits off.
	Off bool
	// OrganizationsPerMinute is how many organizations one address may create. 0 or less means 300.
	OrganizationsPerMinute int
	// FailedAuthPerMinute is how many token exchanges and refreshes of one agent may fail at one address. 0 or less means 600. All
	// agents at one address together may try ten times as many secrets.
	FailedAuthPerMinute int
}

// limits are the rate limiters of a server; nil ones are off.
type limits struct {
	organizations *access.RateLimiter[netip.Addr]
	failedAuth    *access.AuthLimiter
}

func newLimits(cfg Limits, now func() time.Time) limits {
	if cfg.Off {
		return limits{}
	}
	return limits{
		organizations: access.NewRateLimiter[netip.Addr]("organizations", cmp.Or(max(cfg.OrganizationsPerMinute, 0), access.DefaultOrganizations), access.MaxAddresses, now),
		failedAuth:    access.NewAuthLimiter(cmp.Or(max(cfg.FailedAuthPerMinute, 0), access.DefaultFailedAuth), now),
	}
}
