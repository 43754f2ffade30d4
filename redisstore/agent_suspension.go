package redisstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"
	"remit/redisclient"
)

var (
	suspendAgent = newScript("suspend_agent", writes)
	resumeAgent  = newScript("resume_agent", writes)
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
	return readAgent(key.Organization, id, r.List(0))
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
	var done int64
	for before := uuid.Nil; ; {
		r, err := s.runByKey(ctx, key, flowOf(key), listOrganization, index, key.Hash, members{}.below(before), agentsAtOnce)
		ids, _, err := members{}.page(r, err)
		if err != nil {
			return done, err
		}
		restricted, err := s.restrictSome(ctx, sc, flowOf(key), key.Organization, ids, reason)
		if done += restricted; err != nil || len(ids) < agentsAtOnce {
			return done, err
		}
		before = ids[len(ids)-1]
	}
}

// restrictSome runs the script for each agent, those of one server in one pipeline. It returns how many are live, and the
// first error.
func (s *Store) restrictSome(ctx context.Context, sc *script, f flow, organization uuid.UUID, ids []uuid.UUID, reason string) (int64, error) {
	calls := make([]*redisclient.BatchCall, len(ids))
	for i, id := range ids {
		c := redisclient.NewCommand(f, 2)
		c.Keys(s.keys.agent(id), s.keys.events(id))
		c.Arguments(organization, reason, s.auditAs(ctx, actorKey), "")
		calls[i] = &redisclient.BatchCall{Script: sc, Command: c}
	}
	s.client.RunAll(ctx, calls, func(int) {}, func(ctx context.Context, i int) {
		calls[i].Reply, calls[i].Err = s.client.RunCommand(ctx, sc, calls[i].Command)
	})
	var live int64
	var failed error
	for _, call := range calls {
		switch {
		case call.Err == nil:
			live++
			s.usage.noteEvent(organization)
		case errors.Is(call.Err, ErrUnknownAgent), errors.Is(call.Err, ErrAgentRevoked): // it is not to be counted
		default:
			failed = cmp.Or(failed, call.Err)
		}
	}
	return live, failed
}
