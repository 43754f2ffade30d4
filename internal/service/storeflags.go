package service

import (
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"remit/internal/keys"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
)

// storeFlags say where the state is and how it is kept. They are the same for all instances on one Redis, gateways included.
type storeFlags struct {
	RedisURL   redisstore.URL        `help:"redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// URL. Without it the service starts redis-server from the PATH, or else keeps everything in memory."`
	Durability redisstore.Durability `default:"local" enum:"local,replicated" help:"When a write is acknowledged: once the primary has it (local), or once a replica has confirmed it too (replicated)."`
	Due        string                `default:"on" enum:"on,off" help:"Whether expiries, returns of parts and ends of budgets' periods are recorded soon, without a request (on), or by the next request that meets them (off). The same for all instances."`
	Issuer     string                `help:"The iss claim of access tokens: the service's public URL without a path, the same on every instance. Without it the first instance on a Redis sets it."`
	keys.Flags
	RateLimits       string        `enum:"on,off" default:"on" help:"Rate limits per client address, organization and agent: on or off."`
	OrganizationRate int           `default:"10000" help:"Objects per second that an organization may create on each instance (1 to 1000000)."`
	AgentRate        int           `default:"5000" help:"Objects per second that an agent may create on each instance (1 to 1000000)."`
	Quotas           quotas        `help:"Quotas of each organization, as name=value,…: agents, open_sessions, pending_transactions, refresh_families, idempotency_keys, bytes. 0 means unlimited; the others keep their defaults."`
	RefreshGrace     time.Duration `default:"60s" help:"How long a used refresh token still returns its successor (0 to 30m)."`
	FamilyLifetime   time.Duration `default:"2160h" help:"Maximum lifetime of a refresh token family, however often it is refreshed (1h to 87600h). A shorter one applies to existing families from their next refresh."`
	Retention        time.Duration `default:"168h" help:"How long sessions and transactions stay readable after they end, and agents after they were deleted (at least 1s)."`
	EventsKept       int           `default:"1000" help:"Approximate number of events kept in each agent's audit trail (1 to 1000000)."`
	UsageKept        time.Duration `default:"9600h" help:"How long the usage of each day stays readable, in whole days (24h to 87600h)."`
}

func (f *storeFlags) check() error {
	switch {
	case f.RefreshGrace < 0 || f.RefreshGrace > 30*time.Minute:
		return errors.New("--refresh-grace must be from 0 to 30m")
	case f.FamilyLifetime < time.Hour || f.FamilyLifetime > 10*365*24*time.Hour:
		return errors.New("--family-lifetime must be from 1h to 87600h")
	case f.Issuer != "" && !keys.IsIssuer(f.Issuer):
		return errors.New("--issuer must be an http or https URL of a host, without a path")
	case f.Retention < time.Second:
		return errors.New("--retention must be at least 1s")
	case f.EventsKept < 1 || f.EventsKept > 1_000_000:
		return errors.New("--events-kept must be from 1 to 1000000")
	case f.UsageKept < 24*time.Hour || f.UsageKept > 10*365*24*time.Hour || f.UsageKept%(24*time.Hour) != 0:
		return errors.New("--usage-kept must be from 24h to 87600h, in whole days")
	case f.OrganizationRate < 1 || f.OrganizationRate > maxRate:
		return errors.New("--organization-rate must be from 1 to 1000000")
	case f.AgentRate < 1 || f.AgentRate > maxRate:
		return errors.New("--agent-rate must be from 1 to 1000000")
	}
	return nil
}

func (f storeFlags) limits() server.Limits { return server.Limits{Off: f.RateLimits == "off"} }

const maxRate = 1_000_000 // a second

// rates returns the rate limits that the store enforces; none when limits are off.
func (f storeFlags) rates() redisstore.Rates {
	if f.RateLimits == "off" {
		return redisstore.Rates{}
	}
	return redisstore.Rates{Organization: f.OrganizationRate, Agent: f.AgentRate}
}

// quotas are the quotas of an organization, by name.
type quotas map[string]int64

// UnmarshalText is called by the flag parser.
func (q *quotas) UnmarshalText(text []byte) error {
	given, err := redisstore.ParseQuotas(string(text))
	*q = given
	return err
}

func (f *storeFlags) openStore(url string, tracer trace.Tracer, log *slog.Logger) (*redisstore.Store, error) {
	return redisstore.Open(redisstore.Config{
		URL: url, Durability: f.Durability, Retention: f.Retention, RefreshGrace: f.RefreshGrace, FamilyLifetime: f.FamilyLifetime, EventsKept: f.EventsKept, UsageKept: f.UsageKept,
		RefreshLifetime: token.RefreshLifetime, AccessLifetime: token.AccessLifetime,
		Quotas: f.Quotas, Rates: f.rates(),
		FollowsSuspensions: true, Tracer: tracer, Log: log, KeepsFeeds: true, RecordsDue: f.Due == "on",
	})
}
