package redisstore

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// resource is a kind of thing that a quota limits.
type resource int

const (
	agentsHeld resource = iota
	openSessionsHeld
	pendingHeld
	familiesHeld
	keysHeld
	bytesHeld
	resources

	noResource = resource(-1)
)

// resourceNames are the names of the quotas, in the API and in Redis.
var resourceNames = [resources]string{
	"agents", "open_sessions", "pending_transactions", "refresh_families", "idempotency_keys", "bytes",
}

// quantities has one number for each resource.
type quantities [resources]int64

func (a *quantities) add(b quantities) {
	for i := range a {
		a[i] += b[i]
	}
}

func (a quantities) byName() map[string]int64 {
	named := make(map[string]int64, len(a))
	for i, amount := range a {
		named[resourceNames[i]] = amount
	}
	return named
}

// defaultQuotas are generous: they stop a runaway client, and leave memory to the fair share. 0 is unbounded.
var defaultQuotas = quantities{
	agentsHeld: 1_000_000, openSessionsHeld: 10_000_000, pendingHeld: 10_000_000, familiesHeld: 100_000_000, keysHeld: 1_000_000_000,
}

const (
	// DefaultQuota, in SetQuotas, resets an organization's quota to the default.
	DefaultQuota = -1
	// maxQuota is a number that Lua represents exactly.
	maxQuota = 1_000_000_000_000_000
)

// ParseQuotas reads name=value pairs, separated by commas. A value is a whole number up to 10^15, 0 for unbounded, or
// "default". It returns DefaultQuota for "default".
func ParseQuotas(text string) (map[string]int64, error) {
	quotas := map[string]int64{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if _, twice := quotas[name]; twice {
			return nil, fmt.Errorf("the quota %s is given twice", name)
		}
		number := int64(DefaultQuota)
		if value != "default" {
			var err error
			if number, err = strconv.ParseInt(value, 10, 64); err != nil || number < 0 {
				return nil, fmt.Errorf("the quota %q must be name=value, with a whole number from 0 (unbounded) to %d, or default", pair, int64(maxQuota))
			}
		}
		quotas[name] = number
	}
	return quotas, checkQuotas(quotas)
}

func checkQuotas(quotas map[string]int64) error {
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		if !slices.Contains(resourceNames[:], name) {
			return fmt.Errorf("no quota is called %q: there are %s", name, strings.Join(resourceNames[:], ", "))
		}
		if value := quotas[name]; value < DefaultQuota || value > maxQuota {
			return fmt.Errorf("the quota %s must be from 0 (unbounded) to %d", name, int64(maxQuota))
		}
	}
	return nil
}

// over returns the quotas with those in the map replaced.
func (a quantities) over(quotas map[string]int64) quantities {
	for i, name := range resourceNames {
		if value, set := quotas[name]; set && value >= 0 {
			a[i] = value
		}
	}
	return a
}

var setQuotas = newScript("kernel/set_quotas", writes)

// SetQuotas sets quotas of an organization by name: 0 for unbounded, DefaultQuota for the default. Others stay unchanged.
// Instances apply them within a second of the organization's next request. It is safe to repeat. Errors:
// ErrUnknownOrganization.
func (s *Store) SetQuotas(ctx context.Context, organization uuid.UUID, quotas map[string]int64) error {
	if err := checkQuotas(quotas); err != nil {
		return err
	}
	var lines []byte
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		if quotas[name] == DefaultQuota {
			lines = fmt.Appendf(lines, "%s -\n", name)
		} else {
			lines = fmt.Appendf(lines, "%s %d\n", name, quotas[name])
		}
	}
	keys := []string{s.keys.organization(organization), s.keys.organizationUsage(organization)}
	_, err := s.client.Run(ctx, ownFlow, setQuotas, keys, lines)
	return err
}

// Quotas returns an organization's quotas by name, 0 for unbounded. Errors: ErrUnknownOrganization.
func (s *Store) Quotas(ctx context.Context, organization uuid.UUID) (map[string]int64, error) {
	_, quotas, err := s.OrganizationUsage(ctx, organization)
	return quotas, err
}

// unbounded is above every amount.
const unbounded = math.MaxInt64
