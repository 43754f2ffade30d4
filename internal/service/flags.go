package service

import (
	"errors"
	"time"

	"remit/internal/keys"
	"remit/money"
	"remit/redisstore"
)

// serve is the flags of the command that serves HTTP.
type serve struct {
	Listen     string                `default:"127.0.0.1:8080" help:"Address to listen on. The command healthcheck uses it too."`
	RedisURL   redisstore.URL        `help:"redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// URL. Without it the service starts redis-server from the PATH, or else keeps everything in memory."`
	Durability redisstore.Durability `default:"local" enum:"local,replicated" help:"When a write is acknowledged: once the primary has it (local), or once a replica has confirmed it too (replicated)."`
	Due        string                `default:"on" enum:"on,off" help:"Whether expiries, returns of parts and ends of budgets' periods are recorded soon, without a request (on), or by the next request that meets them (off). The same for all instances."`
	DataDir    string                `default:"data" help:"Data directory of the redis-server that the service starts."`
	Issuer     string                `help:"The iss claim of access tokens: the service's public URL without a path, the same on every instance. Without it the first instance on a Redis sets it."`
	keys.Flags
	tlsFlags
	accessFlags
	metricsFlags
	consoleFlags
	logFlags
	traceFlags
	RefreshGrace        time.Duration  `default:"60s" help:"How long a used refresh token still returns its successor (0 to 30m)."`
	FamilyLifetime      time.Duration  `default:"2160h" help:"Maximum lifetime of a refresh token family, however often it is refreshed (1h to 87600h). A shorter one applies to existing families from their next refresh."`
	Retention           time.Duration  `default:"168h" help:"How long sessions and transactions stay readable after they end, and agents after they were deleted (at least 1s)."`
	EventsKept          int            `default:"1000" help:"Approximate number of events kept in each agent's audit trail (1 to 1000000)."`
	UsageKept           time.Duration  `default:"9600h" help:"How long the usage of each day stays readable, in whole days (24h to 87600h)."`
	DefaultMaxActions   int64          `default:"1000" help:"max_actions of a session created without it (1 to 1000000000)."`
	DefaultMaxValueUSD  money.MicroUSD `name:"default-max-value-usd" default:"100" help:"max_value_usd of a session created without it."`
	DefaultExpiresAfter time.Duration  `name:"default-expires-in" default:"1h" help:"Lifetime of a session created without expires_in_seconds (1s to 720h, in whole seconds)."`
}

// Validate is called by the flag parser.
func (c *serve) Validate() error {
	switch {
	case c.RefreshGrace < 0 || c.RefreshGrace > 30*time.Minute:
		return errors.New("--refresh-grace must be from 0 to 30m")
	case c.FamilyLifetime < time.Hour || c.FamilyLifetime > 10*365*24*time.Hour:
		return errors.New("--family-lifetime must be from 1h to 87600h")
	case c.Issuer != "" && !keys.IsIssuer(c.Issuer):
		return errors.New("--issuer must be an http or https URL of a host, without a path")
	case c.Issuer == "" && len(c.ProofHosts) > 0:
		return errors.New("--proof-hosts needs --issuer: without an issuer of its own the service takes proofs for every host")
	case c.Retention < time.Second:
		return errors.New("--retention must be at least 1s")
	case c.EventsKept < 1 || c.EventsKept > 1_000_000:
		return errors.New("--events-kept must be from 1 to 1000000")
	case c.UsageKept < 24*time.Hour || c.UsageKept > 10*365*24*time.Hour || c.UsageKept%(24*time.Hour) != 0:
		return errors.New("--usage-kept must be from 24h to 87600h, in whole days")
	case c.DefaultMaxActions < 1 || c.DefaultMaxActions > 1_000_000_000:
		return errors.New("--default-max-actions must be from 1 to 1000000000")
	case c.DefaultExpiresAfter < time.Second || c.DefaultExpiresAfter > 30*24*time.Hour || c.DefaultExpiresAfter%time.Second != 0:
		return errors.New("--default-expires-in must be from 1s to 720h, in whole seconds")
	case c.Durability == redisstore.Replicated && c.RedisURL == "":
		return errors.New("--durability=replicated needs --redis-url: the redis-server that the service starts has no replica")
	}
	return errors.Join(c.tlsFlags.check(), c.accessFlags.check(), c.consoleFlags.check(), c.traceFlags.check())
}
