package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

var foldUsage = newScript("records/fold_usage", bestEffort)

const (
	// foldedAtOnce is how many sessions one pipeline folds: half a millisecond of Redis.
	foldedAtOnce = 16
	// Folding then leaves Redis and this instance to others for twice as long as that took, but not much longer on a slow machine.
	restFactor  = 2
	longestRest = 2 * time.Millisecond
	// A call that found too many others waiting is tried again so often. It has waited for up to a second before.
	overloadsBorne = 10
	overloadRest   = 10 * time.Millisecond
)

// folding folds sessions of an organization, whosever agents they have, one pipeline after the other.
type folding struct {
	*Store
	flow         flow
	organization uuid.UUID

	mu      sync.Mutex
	waiting []place
}

// add folds sessions, and leaves a few to the next call.
func (f *folding) add(ctx context.Context, sessions []place) error {
	f.mu.Lock()
	f.waiting = append(f.waiting, sessions...)
	f.mu.Unlock()
	return f.fold(ctx, foldedAtOnce)
}

// fold folds what waits as long as there are so many.
func (f *folding) fold(ctx context.Context, atLeast int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) >= atLeast {
		began, some := time.Now(), f.waiting[:min(len(f.waiting), foldedAtOnce)]
		err := patiently(ctx, func() error { return f.foldSessions(ctx, f.flow, f.organization, some) })
		if err != nil {
			return err
		}
		f.waiting = f.waiting[len(some):]
		if err := rest(ctx, min(restFactor*time.Since(began), longestRest)); err != nil {
			return err
		}
	}
	f.waiting = append([]place(nil), f.waiting...) // lets go of those that are folded
	return nil
}

// foldSessions folds the usage of sessions into their agents' days, in one pipeline. Leases whose time is up are spent first.
func (s *Store) foldSessions(ctx context.Context, f flow, organization uuid.UUID, sessions []place) error {
	calls := make([]*redisclient.BatchCall, len(sessions))
	for i, p := range sessions {
		command := redisclient.NewCommand(f, 3)
		command.Keys(s.foldKeys(p)...)
		command.Arguments(p.agent, s.daysKept())
		calls[i] = &redisclient.BatchCall{Script: foldUsage, Command: command}
	}
	read := func(i int) { calls[i].Again = calls[i].Again || isDue(calls[i].Err) }
	s.client.RunAll(ctx, calls, read, func(ctx context.Context, i int) { calls[i].Err = s.foldSession(ctx, f, organization, sessions[i]) })
	for _, call := range calls {
		if err := nothingVisible(call.Err); err != nil {
			return err
		}
	}
	return nil
}

// foldSession is foldSessions for one session by itself.
func (s *Store) foldSession(ctx context.Context, f flow, organization uuid.UUID, p place) error {
	act := ownActor(organization, p.agent)
	act.flow = f
	_, err := s.releasingDueHolds(ctx, act, p.session, func() (*reply, error) {
		return s.client.Run(ctx, f, foldUsage, s.foldKeys(p), p.agent, s.daysKept())
	})
	return err
}

// foldKeys are the keys of fold_usage.lua.
func (s *Store) foldKeys(p place) []string {
	return []string{s.keys.session(p.agent, p.session), s.keys.usageDays(p.agent), s.keys.agent(p.agent)}
}

// daysKept is how many days before this one an agent's usage is kept.
func (s *Store) daysKept() int { return int(s.config.UsageKept / (24 * time.Hour)) }

// patiently makes a call again while others leave it no turn, a few times: the rest of what was done would be lost.
func patiently(ctx context.Context, call func() error) error {
	for attempt := 0; ; attempt++ {
		err := call()
		if !errors.Is(err, ErrOverloaded) || attempt == overloadsBorne || rest(ctx, overloadRest) != nil {
			return err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
