package redisclient

import (
	"context"
	"errors"
)

// Watch is called around each call of a script that is watched. Both functions get the call's keys, and may keep none of them
// longer than they take. The zero value watches nothing.
type Watch struct {
	// Before is called before the call is sent.
	Before func(ctx context.Context, f Flow, keys []string)
	// After is called when it has ended, unless it certainly did not run. doubtful: it may still run.
	After func(f Flow, keys []string, doubtful bool)
}

// Watched makes calls of the script known to Config.Watch: those that ended in a way that changes says may have changed
// something. It returns the script.
func (s *Script) Watched(changes func(r *Reply, err error) bool) *Script {
	s.changes = changes
	return s
}

// IsWatched says whether calls of the script are known to Config.Watch.
func (s *Script) IsWatched() bool { return s.changes != nil }

// UnderWay returns how many calls of watched scripts are under way.
func (c *Client) UnderWay() int64 { return c.underWay.Load() }

func (c *Client) watches(sc *Script) bool { return sc.changes != nil && c.config.Watch.Before != nil }

// watched tells how a call of a watched script ended.
func (c *Client) watched(sc *Script, cmd *Command, r *Reply, err error) {
	if !c.watches(sc) {
		return
	}
	lost := errors.Is(err, ErrUnavailable)
	// A lost answer to what asks for no write leaves the caller in no doubt, but it may have written.
	doubtful := errors.Is(err, ErrOutcomeUnknown) || lost && sc.access != Writes && !isShed(err)
	if doubtful || !lost && sc.changes(r, err) {
		c.config.Watch.After(cmd.flow, cmd.keysOfScript(), doubtful)
	}
}

// keysOfScript returns the keys of the call of a script.
func (c *Command) keysOfScript() []string { return c.texts[:c.words[countWord].(int)] }
