package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
)

var (
	foldUsage       = newScript("fold_usage", bestEffort)
	rememberDeleted = newScript("remember_deleted", writes)
)

const (
	// foldEvery is how often the service folds the usage of all sessions, unless sessions are kept for less than four times as long.
	foldEvery = time.Hour
	// mostDeletedAgents is how many deleted agents of an organization the reports contain: the last ones.
	mostDeletedAgents = 100_000
	// membersAtOnce is how many members of an index one command reads.
	membersAtOnce = 1000
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
	for _, agent := range agents {
		sessions, err := s.sessionsKept(ctx, f, agent)
		if err != nil {
			return err
		}
		if err := s.foldSessions(ctx, f, organization, sessions); err != nil {
			return err
		}
	}
	return nil
}

// sessionsKept returns the sessions in an agent's index: those that are kept, and some that are gone.
func (s *Store) sessionsKept(ctx context.Context, f flow, agent uuid.UUID) ([]place, error) {
	ids, err := s.membersOf(ctx, f, s.keys.agentSessions(agent), ofCell(agent))
	found := make([]place, len(ids))
	for i, id := range ids {
		found[i] = place{id, agent}
	}
	return found, err
}

// membersOf returns the ids in an index.
func (s *Store) membersOf(ctx context.Context, f flow, index string, m members) ([]uuid.UUID, error) {
	var found []uuid.UUID
	for from := 0; ; from += membersAtOnce {
		answer, err := s.client.Call(ctx, f, reads, "zrange", index, strconv.Itoa(from), strconv.Itoa(from+membersAtOnce-1))
		if err != nil {
			return nil, err
		}
		entries, err := textsOf(answer)
		if err != nil {
			return nil, err
		}
		found = append(found, m.known(entries)...)
		if len(entries) < membersAtOnce {
			return found, nil
		}
	}
}

// rememberDeleted enters an agent that is to be deleted among those whose usage is kept, and forgets some that are no longer.
func (s *Store) rememberDeleted(ctx context.Context, f flow, organization, agent uuid.UUID) error {
	kept := s.config.UsageKept + 24*time.Hour
	_, err := s.client.Run(ctx, f, rememberDeleted, []string{s.keys.deletedAgents(organization)}, agent, kept.Milliseconds(), mostDeletedAgents)
	return nothingVisible(err)
}

// foldSessions folds the usage of sessions into their agents' days. Leases whose time is up are spent first.
func (s *Store) foldSessions(ctx context.Context, f flow, organization uuid.UUID, sessions []place) error {
	return eachOf(ctx, len(sessions), func(ctx context.Context, i int) error {
		p := sessions[i]
		act := ownActor(organization, p.agent)
		act.flow = f
		keys := []string{s.keys.session(p.agent, p.session), s.keys.usageDays(p.agent), s.keys.agent(p.agent)}
		_, err := s.releasingDueHolds(ctx, act, p.session, func() (*reply, error) {
			return s.client.Run(ctx, f, foldUsage, keys, p.agent, s.daysKept())
		})
		return nothingVisible(err)
	})
}

// daysKept is how many days before this one an agent's usage is kept.
func (s *Store) daysKept() int { return int(s.config.UsageKept / (24 * time.Hour)) }

// textsOf reads an answer that is an array of texts.
func textsOf(answer any) ([]string, error) {
	values, ok := answer.([]any)
	if !ok {
		return nil, errReply
	}
	texts := make([]string, len(values))
	for i, value := range values {
		if texts[i], ok = value.(string); !ok {
			return nil, errReply
		}
	}
	return texts, nil
}
