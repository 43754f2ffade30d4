package redisstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

var (
	suspendAgent = newScript("identity/suspend_agent", writes)
	resumeAgent  = newScript("identity/resume_agent", writes)
)

// SuspendAgent suspends an agent of the key's organization, and returns it. Until ResumeAgent its secret and tokens are
// refused, and nothing new may be done in its sessions; what has begun may settle. One that is suspended keeps its first time
// and reason ("" for none). Errors: ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked.
func (s *Store) SuspendAgent(ctx context.Context, key APIKey, id uuid.UUID, reason string) (Agent, error) {
	return s.restrictAgent(ctx, suspendAgent, s.proven.urgent, key, id, reason)
}

// ResumeAgent ends an agent's suspension, and returns the agent. The reason is for the audit trail. Errors:
// ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked.
func (s *Store) ResumeAgent(ctx context.Context, key APIKey, id uuid.UUID, reason string) (Agent, error) {
	return s.restrictAgent(ctx, resumeAgent, s.proven.flow, key, id, reason)
}

func (s *Store) restrictAgent(ctx context.Context, sc *script, flowOf func(APIKey) flow, key APIKey, id uuid.UUID, reason string) (Agent, error) {
	if _, err := s.authenticate(ctx, flowOf(key), key); err != nil {
		return Agent{}, err
	}
	r, err := s.client.Run(ctx, flowOf(key), sc, []string{s.keys.agent(id), s.keys.events(id)},
		key.Organization, reason, s.auditAs(ctx, actorKey), "1")
	if err != nil {
		return Agent{}, err
	}
	s.usage.noteEvent(key.Organization)
	restricted, err := readAgent(key.Organization, id, r.List(0))
	if err != nil {
		return Agent{}, err
	}
	restricted, err = s.withUsage(ctx, restricted)
	return restricted, halfDone(err)
}

// agentsAtOnce is how many agents one pipeline suspends or resumes.
const agentsAtOnce = 500

// SuspendAgents suspends all agents that the key's organization has when it is called, as SuspendAgent does, and returns how
// many live agents are suspended now. It may be repeated. Errors: ErrInvalidAPIKey; after ErrUnavailable and ErrOutcomeUnknown
// some may be suspended.
func (s *Store) SuspendAgents(ctx context.Context, key APIKey, reason string) (int64, error) {
	return s.restrictAgents(ctx, suspendAgent, s.proven.urgent, key, reason)
}

// ResumeAgents resumes all agents that the key's organization has when it is called, as ResumeAgent does, and returns how
// many live agents are not suspended now. Errors: as SuspendAgents.
func (s *Store) ResumeAgents(ctx context.Context, key APIKey, reason string) (int64, error) {
	return s.restrictAgents(ctx, resumeAgent, s.proven.flow, key, reason)
}

// restrictAgents suspends or resumes the agents page by page of their index. An agent that is created meanwhile is newer than
// every page.
func (s *Store) restrictAgents(ctx context.Context, sc *script, flowOf func(APIKey) flow, key APIKey, reason string) (int64, error) {
	index := []string{s.keys.organization(key.Organization), s.keys.organizationAgents(key.Organization)}
	command := func(id uuid.UUID) *redisclient.BatchCall {
		c := redisclient.NewCommand(flowOf(key), 2)
		c.Keys(s.keys.agent(id), s.keys.events(id))
		c.Arguments(key.Organization, reason, s.auditAs(ctx, actorKey), "")
		return &redisclient.BatchCall{Script: sc, Command: c}
	}
	var done int64
	for before := uuid.Nil; ; {
		r, err := s.runByKey(ctx, key, flowOf(key), listOrganization, index, key.credential(), members{}.below(before), agentsAtOnce)
		ids, _, err := members{}.page(r, err)
		if err != nil {
			return done, err
		}
		live, err := s.restrictSome(ctx, ids, command)
		s.noteEvents(key.Organization, live)
		if done += live; err != nil || len(ids) < agentsAtOnce {
			return done, err
		}
		before = ids[len(ids)-1]
	}
}

// noteEvents counts an event of each of so many agents.
func (s *Store) noteEvents(organization uuid.UUID, count int64) {
	s.usage.note(organization, func(c *changes, _ *quantities) { c.eventBytes += count * eventSize })
}

// restrictSome runs the script for each agent, those of one server in one pipeline. Those that did not run follow in another
// round, once the first of them has run by itself: then its server knows the script, and the client where the keys are. It
// returns how many agents are live, and the first error.
func (s *Store) restrictSome(ctx context.Context, ids []uuid.UUID, command func(uuid.UUID) *redisclient.BatchCall) (live int64, failed error) {
	count := func(err error) {
		switch {
		case err == nil:
			live++
		case errors.Is(err, ErrUnknownAgent), errors.Is(err, ErrAgentRevoked): // it is not to be counted
		default:
			failed = cmp.Or(failed, err)
		}
	}
	for len(ids) > 0 {
		calls, again := make([]*redisclient.BatchCall, len(ids)), make([]bool, len(ids))
		for i, id := range ids {
			calls[i] = command(id)
		}
		s.client.RunAll(ctx, calls, func(int) {}, func(_ context.Context, i int) { again[i] = true })
		var rest []uuid.UUID
		for i, call := range calls {
			if again[i] {
				rest = append(rest, ids[i])
			} else {
				count(call.Err)
			}
		}
		if ids = rest; len(rest) > 0 {
			first := command(rest[0])
			_, err := s.client.RunCommand(ctx, first.Script, first.Command)
			count(err)
			ids = rest[1:]
		}
	}
	return live, failed
}
