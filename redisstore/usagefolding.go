package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
)

var rememberDeleted = newScript("identity/remember_deleted", writes)

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
	mine, err := s.client.Call(ctx, flow{}, bestEffort, "set", s.keys.folding(), "1", "nx", "px", pause)
	if err != nil || mine == nil {
		return err
	}
	organizations, err := s.membersOf(ctx, flow{}, s.keys.holdings(), members{})
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
	agents, err := s.agentsWithUsage(ctx, f, organization, uuid.Nil)
	if err != nil {
		return err
	}
	return s.foldAgents(ctx, f, organization, agents)
}

// foldAgents folds the usage of the sessions of agents.
func (s *Store) foldAgents(ctx context.Context, f flow, organization uuid.UUID, agents []uuid.UUID) error {
	folding := &folding{Store: s, flow: f, organization: organization}
	err := someOf(ctx, len(agents), func(ctx context.Context, i int) error {
		return s.eachKept(ctx, f, agents[i], folding.add)
	})
	if err != nil {
		return err
	}
	return folding.fold(ctx, 1)
}

// eachKept calls visit with the sessions in an agent's index, some at a time: those that are kept, and some that are gone.
func (s *Store) eachKept(ctx context.Context, f flow, agent uuid.UUID, visit func(context.Context, []place) error) error {
	return s.eachMember(ctx, f, s.keys.agentSessions(agent), ofCell(agent), func(ids []uuid.UUID) error {
		sessions := make([]place, len(ids))
		for i, id := range ids {
			sessions[i] = place{id, agent}
		}
		return visit(ctx, sessions)
	})
}

// rememberDeleted enters an agent that is to be deleted among those whose usage is kept, at most so many, and forgets some that are no
// longer.
func (s *Store) rememberDeleted(ctx context.Context, f flow, organization, agent uuid.UUID, most int) error {
	kept := s.config.UsageKept + 24*time.Hour
	_, err := s.client.Run(ctx, f, rememberDeleted, []string{s.keys.deletedAgents(organization)}, agent, kept.Milliseconds(), most)
	return nothingVisible(err)
}
