package kernel

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

const (
	// MembersAtOnce is how many members of an index one command reads.
	MembersAtOnce = 1000
	// ReadersAtOnce is how many sessions or agents of one organization wait for a turn at once.
	ReadersAtOnce = 8
)

// InTurn makes one of the many calls with which a report or folding reads when it is its organization's turn. Four such calls are under way at once,
// from all callers together, so that others wait for no more than these, however much an organization has. It is patient.
func (s *Core) InTurn(ctx context.Context, f redisclient.Flow, call func() error) error {
	var release func()
	err := Patiently(ctx, func() (err error) {
		release, err = s.Client.Turn(ctx, f)
		return err
	})
	if err != nil {
		return err
	}
	defer release()
	return call()
}

// EachOf calls do for 0 to n−1, so many at once, until one fails, and returns the first error.
func EachOf(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range n {
		turns <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-turns }()
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// Map returns the results of f for the elements, in their order.
func Map[T, R any](things []T, f func(T) R) []R {
	all := make([]R, len(things))
	for i, thing := range things {
		all[i] = f(thing)
	}
	return all
}

// eachMember calls visit with the ids in an index whose scores are all 0, some at a time. What is added or removed meanwhile moves no other.
func (s *Core) eachMember(ctx context.Context, f redisclient.Flow, index string, m Members, visit func([]uuid.UUID) error) error {
	for from := "-"; ; {
		var entries []string
		err := s.InTurn(ctx, f, func() (err error) {
			entries, err = s.Texts(ctx, f, "zrange", index, from, "+", "bylex", "limit", "0", strconv.Itoa(MembersAtOnce))
			return err
		})
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := visit(m.Known(entries)); err != nil || len(entries) < MembersAtOnce {
			return err
		}
		from = "(" + entries[len(entries)-1]
	}
}

// MembersOf returns the ids in an index by time, the newest first: what is removed meanwhile is the oldest, and moves no other.
func (s *Core) MembersOf(ctx context.Context, f redisclient.Flow, index string, m Members) ([]uuid.UUID, error) {
	var found []uuid.UUID
	for from := 0; ; from += MembersAtOnce {
		entries, err := s.Texts(ctx, f, "zrange", index, strconv.Itoa(from), strconv.Itoa(from+MembersAtOnce-1), "rev")
		if err != nil {
			return nil, err
		}
		found = append(found, m.Known(entries)...)
		if len(entries) < MembersAtOnce {
			return found, nil
		}
	}
}

// AgentsWithUsage returns the agents of an organization, the deleted ones with them as long as their usage is kept; or the one asked for.
func (s *Core) AgentsWithUsage(ctx context.Context, f redisclient.Flow, organization, only uuid.UUID) ([]uuid.UUID, error) {
	if only != uuid.Nil {
		return s.oneAgent(ctx, f, organization, only)
	}
	seen := map[uuid.UUID]struct{}{} // one that is deleted meanwhile is in both indexes
	err := s.eachMember(ctx, f, s.Keys.OrganizationAgents(organization), Members{}, func(ids []uuid.UUID) error {
		for _, id := range ids {
			seen[id] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	deleted, err := s.MembersOf(ctx, f, s.Keys.DeletedAgents(organization), Members{})
	for _, id := range deleted {
		seen[id] = struct{}{}
	}
	return slices.Collect(maps.Keys(seen)), err
}

// oneAgent returns an agent if the organization has it, or had it and keeps its usage.
func (s *Core) oneAgent(ctx context.Context, f redisclient.Flow, organization, agent uuid.UUID) ([]uuid.UUID, error) {
	for _, index := range []string{s.Keys.OrganizationAgents(organization), s.Keys.DeletedAgents(organization)} {
		score, err := s.Client.Call(ctx, f, redisclient.Reads, "zscore", index, string(agent[:]))
		if err != nil || score != nil {
			return []uuid.UUID{agent}, err
		}
	}
	return nil, ErrUnknownAgent
}

// Texts runs a command that reads an array of texts.
func (s *Core) Texts(ctx context.Context, f redisclient.Flow, verb, key string, args ...string) ([]string, error) {
	answer, err := s.Client.Call(ctx, f, redisclient.Reads, verb, key, args...)
	if err != nil {
		return nil, err
	}
	values, ok := answer.([]any)
	if !ok {
		return nil, redisclient.ErrReply
	}
	texts := make([]string, len(values))
	for i, value := range values {
		if texts[i], ok = value.(string); !ok {
			return nil, redisclient.ErrReply
		}
	}
	return texts, nil
}

// Patiently makes a call again while others leave it no turn, a few times: the rest of what was done would be lost.
func Patiently(ctx context.Context, call func() error) error {
	for attempt := 0; ; attempt++ {
		err := call()
		if !errors.Is(err, redisclient.ErrOverloaded) || attempt == overloadsBorne || Rest(ctx, overloadRest) != nil {
			return err
		}
	}
}

// Rest waits for so long, or until ctx ends, and then returns its cause.
func Rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// A call that found too many others waiting is tried again so often. It has waited for up to a second before.
const overloadsBorne = 10

const overloadRest = 10 * time.Millisecond

// EachSession calls visit with the sessions in an agent's index, some at a time: those that are kept, and some that are gone.
func (s *Core) EachSession(ctx context.Context, f redisclient.Flow, agent uuid.UUID, visit func([]uuid.UUID) error) error {
	return s.eachMember(ctx, f, s.Keys.AgentSessions(agent), OfCell(agent), visit)
}
