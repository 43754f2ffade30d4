package redisstore

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

var rememberDeleted = kernel.NewScript("identity/remember_deleted", writes)

const (
	// foldEvery is how often the service folds the usage of all sessions, unless sessions are kept for less than four times as long.
	foldEvery = time.Hour
	// mostDeletedAgents is how many deleted agents of an organization the reports contain: the last ones.
	mostDeletedAgents = 100_000
)

// FoldPause is how long the service waits between two calls of FoldUsage: a session is folded several times after its last change
// before it is forgotten.
func (s *Store) FoldPause() time.Duration {
	return max(min(s.config.Retention/4, foldEvery), time.Minute)
}

// FoldUsage folds the usage of every session that is kept into its agent's days, unless another instance does so already. What it does not
// reach, because it is broken off, the next call does.
func (s *Store) FoldUsage(ctx context.Context) error {
	pause := strconv.FormatInt(s.FoldPause().Milliseconds()*9/10, 10)
	mine, err := s.client.Call(ctx, flow{}, bestEffort, "set", s.keys.Folding(), "1", "nx", "px", pause)
	if err != nil || mine == nil {
		return err
	}
	organizations, err := s.core.MembersOf(ctx, flow{}, s.keys.Holdings(), kernel.Members{})
	if err != nil {
		return err
	}
	for _, organization := range organizations {
		if err := s.foldOrganization(ctx, organization); err != nil {
			return err
		}
	}
	return nil
}

// foldOrganization folds the usage of an organization's sessions, agent by agent.
func (s *Store) foldOrganization(ctx context.Context, organization uuid.UUID) error {
	f := flow{Owner: organization}
	agents, err := s.core.AgentsWithUsage(ctx, f, organization, uuid.Nil)
	if err != nil {
		return err
	}
	return s.foldAgents(ctx, f, organization, agents)
}

// foldAgents folds the usage of the sessions of agents.
func (s *Store) foldAgents(ctx context.Context, f flow, organization uuid.UUID, agents []uuid.UUID) error {
	folding := &folding{Store: s, flow: f, organization: organization}
	err := kernel.EachOf(ctx, len(agents), kernel.ReadersAtOnce, func(ctx context.Context, i int) error {
		return s.core.EachSession(ctx, f, agents[i], func(sessions []uuid.UUID) error { return folding.add(ctx, agents[i], sessions) })
	})
	if err != nil {
		return err
	}
	return folding.fold(ctx, 1)
}

// rememberDeleted enters an agent that is to be deleted among those whose usage is kept, at most so many, and forgets some that are no
// longer.
func (s *Store) rememberDeleted(ctx context.Context, f flow, organization, agent uuid.UUID, most int) error {
	kept := s.config.UsageKept + 24*time.Hour
	_, err := s.client.Run(ctx, f, rememberDeleted, []string{s.keys.DeletedAgents(organization)}, agent, kept.Milliseconds(), most)
	return kernel.NothingVisible(err)
}

var foldUsage = kernel.NewScript("records/fold_usage", bestEffort)

const (
	// foldedAtOnce is how many sessions one pipeline folds: half a millisecond of Redis.
	foldedAtOnce = 16
	// Folding then leaves Redis and this instance to others for twice as long as that took, but not much longer on a slow machine.
	restFactor  = 2
	longestRest = 2 * time.Millisecond
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
func (f *folding) add(ctx context.Context, agent uuid.UUID, sessions []uuid.UUID) error {
	f.mu.Lock()
	for _, id := range sessions {
		f.waiting = append(f.waiting, place{id, agent})
	}
	f.mu.Unlock()
	return f.fold(ctx, foldedAtOnce)
}

// fold folds what waits as long as there are so many.
func (f *folding) fold(ctx context.Context, atLeast int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) >= atLeast {
		began, some := time.Now(), f.waiting[:min(len(f.waiting), foldedAtOnce)]
		err := kernel.Patiently(ctx, func() error { return f.foldSessions(ctx, f.flow, f.organization, some) })
		if err != nil {
			return err
		}
		f.waiting = f.waiting[len(some):]
		if err := kernel.Rest(ctx, min(restFactor*time.Since(began), longestRest)); err != nil {
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
	read := func(i int) { calls[i].Again = calls[i].Again || kernel.IsDue(calls[i].Err) }
	s.client.RunAll(ctx, calls, read, func(ctx context.Context, i int) { calls[i].Err = s.foldSession(ctx, f, organization, sessions[i]) })
	for _, call := range calls {
		if err := kernel.NothingVisible(call.Err); err != nil {
			return err
		}
	}
	return nil
}

// foldSession is foldSessions for one session by itself.
func (s *Store) foldSession(ctx context.Context, f flow, organization uuid.UUID, p place) error {
	act := ownActor(organization, p.agent)
	act.Flow = f
	_, err := s.repeatWhileDue(ctx, act, p.session, func() (*reply, error) {
		return s.client.Run(ctx, f, foldUsage, s.foldKeys(p), p.agent, s.daysKept())
	})
	return err
}

// foldKeys are the keys of fold_usage.lua.
func (s *Store) foldKeys(p place) []string {
	return []string{s.keys.Session(p.agent, p.session), s.keys.UsageDays(p.agent), s.keys.Agent(p.agent)}
}

// daysKept is how many days before this one an agent's usage is kept.
func (s *Store) daysKept() int { return int(s.config.UsageKept / (24 * time.Hour)) }
