package redisstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

var (
	suspendAgent = kernel.NewScript("identity/suspend_agent", writes)
	resumeAgent  = kernel.NewScript("identity/resume_agent", writes)
)

// SuspendAgent suspends an agent of the key's organization, and returns it. Until ResumeAgent its secret and tokens are
// refused, and nothing new may be done in its sessions; what has begun may settle. One that is suspended keeps its first time
// and reason ("" for none). Errors: ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked.
func (s *Store) SuspendAgent(ctx context.Context, key APIKey, id uuid.UUID, reason string) (Agent, error) {
	return s.changeSuspension(ctx, suspendAgent, s.core.Proven.Urgent, key, id, reason)
}

// ResumeAgent ends an agent's suspension, and returns the agent. The reason is for the audit trail. Errors:
// ErrInvalidAPIKey, ErrUnknownAgent, ErrAgentRevoked.
func (s *Store) ResumeAgent(ctx context.Context, key APIKey, id uuid.UUID, reason string) (Agent, error) {
	return s.changeSuspension(ctx, resumeAgent, s.core.Proven.Flow, key, id, reason)
}

func (s *Store) changeSuspension(ctx context.Context, sc *script, flowOf func(APIKey) flow, key APIKey, id uuid.UUID, reason string) (Agent, error) {
	if _, err := s.core.Authenticate(ctx, flowOf(key), key); err != nil {
		return Agent{}, err
	}
	r, err := s.client.Run(ctx, flowOf(key), sc, []string{s.keys.Agent(id), s.keys.Events(id)},
		key.Organization, reason, s.core.AuditAs(ctx, kernel.ActorKey), "1")
	if err != nil {
		return Agent{}, err
	}
	s.core.Usage.NoteEvent(key.Organization)
	restricted, err := readAgent(key.Organization, id, r.List(0))
	if err != nil {
		return Agent{}, err
	}
	restricted, err = s.withUsage(ctx, restricted)
	return restricted, kernel.HalfDone(err)
}

// agentsAtOnce is how many agents one pipeline suspends or resumes.
const agentsAtOnce = 500

// SuspendAgents suspends all agents that the key's organization has when it is called, as SuspendAgent does, and returns how
// many live agents are suspended now. It may be repeated. Errors: ErrInvalidAPIKey; after ErrUnavailable and ErrOutcomeUnknown
// some may be suspended.
func (s *Store) SuspendAgents(ctx context.Context, key APIKey, reason string) (int64, error) {
	return s.changeSuspensions(ctx, suspendAgent, s.core.Proven.Urgent, key, reason)
}

// ResumeAgents resumes all agents that the key's organization has when it is called, as ResumeAgent does, and returns how
// many live agents are not suspended now. Errors: as SuspendAgents.
func (s *Store) ResumeAgents(ctx context.Context, key APIKey, reason string) (int64, error) {
	return s.changeSuspensions(ctx, resumeAgent, s.core.Proven.Flow, key, reason)
}

// changeSuspensions suspends or resumes the agents page by page of their index. An agent that is created meanwhile is newer than
// every page.
func (s *Store) changeSuspensions(ctx context.Context, sc *script, flowOf func(APIKey) flow, key APIKey, reason string) (int64, error) {
	index := []string{s.keys.Organization(key.Organization), s.keys.OrganizationAgents(key.Organization)}
	command := func(id uuid.UUID) *redisclient.BatchCall {
		c := redisclient.NewCommand(flowOf(key), 2)
		c.Keys(s.keys.Agent(id), s.keys.Events(id))
		c.Arguments(key.Organization, reason, s.core.AuditAs(ctx, kernel.ActorKey), "")
		return &redisclient.BatchCall{Script: sc, Command: c}
	}
	var done int64
	for before := uuid.Nil; ; {
		r, err := s.core.RunByKey(ctx, key, flowOf(key), kernel.ListOrganization, index, key.Credential(), kernel.Members{}.Below(before), agentsAtOnce)
		ids, _, err := kernel.Members{}.Page(r, err)
		if err != nil {
			return done, err
		}
		live, err := s.restrictSome(ctx, ids, command)
		s.core.Usage.NoteEvents(key.Organization, live)
		if done += live; err != nil || len(ids) < agentsAtOnce {
			return done, err
		}
		before = ids[len(ids)-1]
	}
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
