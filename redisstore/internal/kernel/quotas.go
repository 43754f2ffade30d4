package kernel

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Resource is a kind of thing that a quota limits.
type Resource int

const (
	AgentsHeld Resource = iota
	OpenSessionsHeld
	PendingHeld
	FamiliesHeld
	keysHeld
	BytesHeld
	Resources

	NoResource = Resource(-1)
)

// ResourceNames are the names of the quotas, in the API and in Redis.
var ResourceNames = [Resources]string{
	"agents", "open_sessions", "pending_transactions", "refresh_families", "idempotency_keys", "bytes",
}

// Quantities has one number for each resource.
type Quantities [Resources]int64

func (a *Quantities) add(b Quantities) {
	for i := range a {
		a[i] += b[i]
	}
}

// ByName returns the quantities by the names of ParseQuotas.
func (a Quantities) ByName() map[string]int64 {
	named := make(map[string]int64, len(a))
	for i, amount := range a {
		named[ResourceNames[i]] = amount
	}
	return named
}

// DefaultQuotas are generous: they stop a runaway client, and leave memory to the fair share. 0 is unbounded.
var DefaultQuotas = Quantities{
	AgentsHeld: 1_000_000, OpenSessionsHeld: 10_000_000, PendingHeld: 10_000_000, FamiliesHeld: 100_000_000, keysHeld: 1_000_000_000,
}

const (
	// DefaultQuota, in SetQuotas, resets an organization's quota to the default.
	DefaultQuota = -1
	// MaxQuota is a number that Lua represents exactly.
	MaxQuota = 1_000_000_000_000_000
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
				return nil, fmt.Errorf("the quota %q must be name=value, with a whole number from 0 (unbounded) to %d, or default", pair, int64(MaxQuota))
			}
		}
		quotas[name] = number
	}
	return quotas, CheckQuotas(quotas)
}

// CheckQuotas returns an error for a name or a value that no quota has.
func CheckQuotas(quotas map[string]int64) error {
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		if !slices.Contains(ResourceNames[:], name) {
			return fmt.Errorf("no quota is called %q: there are %s", name, strings.Join(ResourceNames[:], ", "))
		}
		if value := quotas[name]; value < DefaultQuota || value > MaxQuota {
			return fmt.Errorf("the quota %s must be from 0 (unbounded) to %d", name, int64(MaxQuota))
		}
	}
	return nil
}

// over returns the quotas with those in the map replaced.
func (a Quantities) over(quotas map[string]int64) Quantities {
	for i, name := range ResourceNames {
		if value, set := quotas[name]; set && value >= 0 {
			a[i] = value
		}
	}
	return a
}

// Unbounded is above every amount.
const Unbounded = math.MaxInt64
