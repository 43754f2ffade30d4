package redisstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/google/uuid"
)

const (
	// membersAtOnce is how many members of an index one command reads.
	membersAtOnce = 1000
	// readersAtOnce is how many sessions or agents of one organization wait for a turn at once.
	readersAtOnce = 8
)

// inTurn makes one of the many calls with which a report or folding reads when it is its organization's turn. Four such calls are under way at once,
// whoever makes them, so that others wait for no more than these, however much an organization has. It is patient.
func (s *Store) inTurn(ctx context.Context, f flow, call func() error) error {
	var release func()
	err := patiently(ctx, func() (err error) {
		release, err = s.client.Turn(ctx, f)
		return err
	})
	if err != nil {
		return err
	}
	defer release()
	return call()
}

// someOf calls do for 0 to n-1, some at once, until one fails, and returns the first error.
func someOf(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	next := make(chan int)
	for range min(n, readersAtOnce) {
		group.Go(func() {
			for i := range next {
				if ctx.Err() == nil {
					if err := do(ctx, i); err != nil {
						cancel(err)
					}
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

// eachMember calls visit with the ids in an index whose scores are all 0, some at a time. What is added or removed meanwhile moves no other.
func (s *Store) eachMember(ctx context.Context, f flow, index string, m members, visit func([]uuid.UUID) error) error {
	for from := "-"; ; {
		var entries []string
		err := s.inTurn(ctx, f, func() (err error) {
			entries, err = s.texts(ctx, f, "zrange", index, from, "+", "bylex", "limit", "0", strconv.Itoa(membersAtOnce))
			return err
		})
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := visit(m.known(entries)); err != nil || len(entries) < membersAtOnce {
			return err
		}
		from = "(" + entries[len(entries)-1]
	}
}

// membersOf returns the ids in an index by time, the newest first: what is removed meanwhile is the oldest, and moves no other.
func (s *Store) membersOf(ctx context.Context, f flow, index string, m members) ([]uuid.UUID, error) {
	var found []uuid.UUID
	for from := 0; ; from += membersAtOnce {
		entries, err := s.texts(ctx, f, "zrange", index, strconv.Itoa(from), strconv.Itoa(from+membersAtOnce-1), "rev")
		if err != nil {
			return nil, err
		}
		found = append(found, m.known(entries)...)
		if len(entries) < membersAtOnce {
			return found, nil
		}
	}
}

// agentsWithUsage returns the agents of an organization, the deleted ones with them as long as their usage is kept; or the one asked for.
func (s *Store) agentsWithUsage(ctx context.Context, f flow, organization, only uuid.UUID) ([]uuid.UUID, error) {
	if only != uuid.Nil {
		return s.oneAgent(ctx, f, organization, only)
	}
	seen := map[uuid.UUID]struct{}{} // one that is deleted meanwhile is in both indexes
	err := s.eachMember(ctx, f, s.keys.organizationAgents(organization), members{}, func(ids []uuid.UUID) error {
		for _, id := range ids {
			seen[id] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	deleted, err := s.membersOf(ctx, f, s.keys.deletedAgents(organization), members{})
	for _, id := range deleted {
		seen[id] = struct{}{}
	}
	return slices.Collect(maps.Keys(seen)), err
}

// oneAgent returns an agent if the organization has it, or had it and keeps its usage.
func (s *Store) oneAgent(ctx context.Context, f flow, organization, agent uuid.UUID) ([]uuid.UUID, error) {
	for _, index := range []string{s.keys.organizationAgents(organization), s.keys.deletedAgents(organization)} {
		score, err := s.client.Call(ctx, f, reads, "zscore", index, string(agent[:]))
		if err != nil || score != nil {
			return []uuid.UUID{agent}, err
		}
	}
	return nil, ErrUnknownAgent
}

// texts runs a command that reads an array of texts.
func (s *Store) texts(ctx context.Context, f flow, verb, key string, args ...string) ([]string, error) {
	answer, err := s.client.Call(ctx, f, reads, verb, key, args...)
	if err != nil {
		return nil, err
	}
	return textsOf(answer)
}

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
