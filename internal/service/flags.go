package service

import (
	"errors"
	"time"

	"remit/money"
	"remit/redisstore"
)

// serve is the flags of the command that serves HTTP.
type serve struct {
	Listen  string `default:"127.0.0.1:8080" help:"Address to listen on. The command healthcheck uses it too."`
	DataDir string `default:"data" help:"Data directory of the redis-server that the service starts."`
	storeFlags
	tlsFlags
	accessFlags
	metricsFlags
	consoleFlags
	logFlags
	traceFlags
	DefaultMaxActions   int64          `default:"1000" help:"max_actions of a session created without it (1 to 1000000000)."`
	DefaultMaxValueUSD  money.MicroUSD `name:"default-max-value-usd" default:"100" help:"max_value_usd of a session created without it."`
	DefaultExpiresAfter time.Duration  `name:"default-expires-in" default:"1h" help:"Lifetime of a session created without expires_in_seconds (1s to 720h, in whole seconds)."`
}

// Validate is called by the flag parser.
func (c *serve) Validate() error {
	switch {
	case c.Issuer == "" && len(c.ProofHosts) > 0:
		return errors.New("--proof-hosts needs --issuer: without an issuer of its own the service takes proofs for every host")
	case c.DefaultMaxActions < 1 || c.DefaultMaxActions > 1_000_000_000:
		return errors.New("--default-max-actions must be from 1 to 1000000000")
	case c.DefaultExpiresAfter < time.Second || c.DefaultExpiresAfter > 30*24*time.Hour || c.DefaultExpiresAfter%time.Second != 0:
		return errors.New("--default-expires-in must be from 1s to 720h, in whole seconds")
	case c.Durability == redisstore.Replicated && c.RedisURL == "":
		return errors.New("--durability=replicated needs --redis-url: the redis-server that the service starts has no replica")
	}
	return errors.Join(c.storeFlags.check(), c.tlsFlags.check(), c.accessFlags.check(), c.consoleFlags.check(), c.traceFlags.check())
}
