// Package kernel has what the rooms of the store share: the client and its scripts, who calls, idempotency keys, and what
// organizations use.
//
// Only keys.go spells keys. Only refusals.go, and the maps that rooms add to it, turn a script's reply codes into errors.
package kernel

import (
	"strconv"
	"sync/atomic"
	"time"

	"remit/internal/redisclient"
)

// Core is what the rooms of the store share: the client and its keys, who calls, idempotency keys, and what organizations
// use. Create one with New, and finish it after use.
type Core struct {
	Client *redisclient.Client
	Keys   Keys

	config    Config
	TrailKept string // Config.TrailKept as scripts take it
	Proven    provenKeys
	Owners    owners
	suspended atomic.Pointer[Suspensions] // nil until it is read
	Usage     *usage
	Refusals  *creationRefusals
	Closed    chan struct{}
}

// Config is what a core needs of the store's configuration, and has no defaults.
type Config struct {
	Prefix             string           // of every key
	Quotas             map[string]int64 // by the names of ParseQuotas
	Rates              Rates
	EventsKept         int           // of an agent's trail
	TrailKept          int           // of a trail until its events are in the feed of the agent's organization
	UsageEvery         time.Duration // the interval at which usage is sent to Redis
	FollowsSuspensions bool          // API keys are refused until the suspended organizations are known
}

// New returns a core that uses the client. It starts nothing before it is used.
func New(client *redisclient.Client, cfg Config) *Core {
	s := &Core{
		Client: client, Keys: Keys{cfg.Prefix}, config: cfg, TrailKept: strconv.Itoa(cfg.TrailKept), Proven: NewProvenKeys(),
		Owners: newOwners(), Usage: newUsage(cfg), Refusals: newCreationRefusals(), Closed: make(chan struct{}),
	}
	s.Usage.Syncing.start, s.Usage.Syncing.hurried = s.keepUsage, make(chan struct{}, 1)
	return s
}

// Finish wakes what waits for the end of the store.
func (s *Core) Finish() { close(s.Closed) }

// Settle sends the usage that Redis does not know yet, for at most FinishTime. Call it after Finish.
func (s *Core) Settle() { s.Usage.Syncing.finish() }
