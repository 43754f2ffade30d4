package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

var (
	listParts         = kernel.NewScript("budgets/list_parts", reads)
	endDescendant     = kernel.NewScript("budgets/end_descendant", writes)
	enforceDescendant = kernel.NewScript("budgets/enforce_descendant", writes)
	limitDescendant   = kernel.NewScript("budgets/limit_descendant", writes)
	shortenDescendant = kernel.NewScript("budgets/shorten_descendant", writes)
	suspendDescendant = kernel.NewScript("budgets/suspend_descendant", writes)
)

// parentsAtOnce is of how many sessions a request reads the children at once. So it has the children of so many sessions in memory
// for each level, however large a tree is.
const parentsAtOnce = 32

// located is what a request that goes down a tree knows of a session.
type located interface{ at() place }

func (p place) at() place { return p }

// descend changes every open descendant of sessions, parents before their children. change gets what is known of the one above,
// and returns what is known of the child; false when nothing below it changes. descend reads a session's parts after it was
// changed, so when that has made the session refuse new children, it misses none. Its calls are of the flow f: what takes authority
// away must not wait for the agents from which it takes it.
func descend[T located](ctx context.Context, s *Store, f flow, above []T,
	change func(ctx context.Context, above T, child place) (T, bool, error)) error {
	for parents := range slices.Chunk(above, parentsAtOnce) {
		var children []part
		found, err := partsOf(ctx, s, f, parents)
		if err != nil {
			return err
		}
		for _, p := range found {
			if !p.taken {
				children = append(children, p)
			}
		}
		changed, goesOn := make([]T, len(children)), make([]bool, len(children))
		err = eachOf(ctx, len(children), func(ctx context.Context, i int) error {
			var err error
			changed[i], goesOn[i], err = change(ctx, parents[children[i].of], children[i].place)
			return err
		})
		if err != nil {
			return err
		}
		var below []T
		for i, next := range changed {
			if goesOn[i] {
				below = append(below, next)
			}
		}
		if err := descend(ctx, s, f, below, change); err != nil {
			return err
		}
	}
	return nil
}

// part is what a session has set aside for a child.
type part struct {
	place      // the child
	of    int  // which of the sessions
	taken bool // the child's usage has replaced it
}

// partsOf returns what the sessions have set aside.
func partsOf[T located](ctx context.Context, s *Store, f flow, of []T) ([]part, error) {
	read := make([][]part, len(of))
	err := eachOf(ctx, len(of), func(ctx context.Context, i int) error {
		r, err := s.client.Run(ctx, f, listParts, []string{s.keys.Parts(of[i].at().agent, of[i].at().session)})
		if err != nil {
			return err
		}
		read[i], err = readParts(r.List(0), i)
		return err
	})
	return slices.Concat(read...), err
}

// readParts reads the ids of children and their parts.
func readParts(r *reply, of int) ([]part, error) {
	parts := make([]part, 0, len(r.Values)/2)
	for i := 0; i+1 < len(r.Values); i += 2 {
		agent, taken, err := readPart(r.Text(i + 1))
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{place{r.ID(i), agent}, of, taken})
	}
	return parts, r.Err
}

// unfinishedBelow turns what kept the descendants of a changed session from following it into ErrOutcomeUnknown: some may not follow, and the
// same request goes on.
func unfinishedBelow(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: the session is changed, and not all of its descendants are: %v", ErrOutcomeUnknown, err)
}

// endBelow ends the descendants of a session that has ended.
func (s *Store) endBelow(ctx context.Context, act kernel.Actor, id uuid.UUID) error {
	return descend(ctx, s, act.Flow, []place{{id, act.Agent}}, func(ctx context.Context, _, child place) (place, bool, error) {
		own := act // who calls, for the audit trail
		own.Agent, own.Written = child.agent, nil
		return child, true, s.endChild(ctx, own, child.session)
	})
}

// endChild ends a session because one above it has ended. act is on its agent.
func (s *Store) endChild(ctx context.Context, act kernel.Actor, id uuid.UUID) error {
	keys := []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, id), s.keys.Holds(act.Agent, id), s.keys.Events(act.Agent),
		s.keys.AgentOpen(act.Agent)}
	r, err := s.repeatWhileDue(ctx, act, id, func() (*reply, error) {
		return s.client.Run(ctx, act.Flow, endDescendant, keys, refusedFor.Milliseconds(), s.core.Audit(ctx, act))
	})
	if err != nil {
		return err
	}
	if r.Text(0) != "" {
		s.core.Usage.NoteEvent(act.Organization)
	}
	return r.Err
}

// The flags of a session that are read here; see budgets/include/restrict.lua.
const (
	hasChildren = "c"
	keptAbove   = "k"
)

// narrowBelow makes the descendants of a session follow a change of its limits.
func (s *Store) narrowBelow(ctx context.Context, act kernel.Actor, id uuid.UUID, n NewLimits) error {
	if n.Lifetime != nil {
		if err := s.shortenBelow(ctx, act.Flow, place{id, act.Agent}); err != nil {
			return err
		}
	}
	if n.MaxLease != nil || n.PerAction.Given { // none leases for longer, or spends more at once, than the session as it is now
		limits, err := s.readLimits(ctx, act.Flow, id)
		if err != nil {
			return err
		}
		if err := s.changeBelow(ctx, act, id, limitDescendant, limits.maxLease, orEmpty((*int64)(limits.perAction))); err != nil {
			return err
		}
	}
	if n.Observes != nil && !*n.Observes {
		return s.changeBelow(ctx, act, id, enforceDescendant)
	}
	return nil
}

// shortenBelow makes no descendant of a session last longer than the session.
func (s *Store) shortenBelow(ctx context.Context, f flow, root place) error {
	last, err := s.client.Call(ctx, f, reads, "hget", s.keys.Session(root.agent, root.session), "x")
	expires, isText := last.(string)
	if err != nil || !isText {
		return err
	}
	return descend(ctx, s, f, []place{root}, func(ctx context.Context, _, p place) (place, bool, error) {
		keys := []string{s.keys.Session(p.agent, p.session), s.keys.AgentOpen(p.agent)}
		_, err := s.client.Run(ctx, f, shortenDescendant, keys, expires, refusedFor.Milliseconds())
		return p, true, err
	})
}

// changeBelow is changeDescendant for every descendant of a session.
func (s *Store) changeBelow(ctx context.Context, act kernel.Actor, id uuid.UUID, sc *script, args ...any) error {
	return descend(ctx, s, act.Flow, []place{{id, act.Agent}}, func(ctx context.Context, _, p place) (place, bool, error) {
		_, err := s.changeDescendant(ctx, act, p, sc, args...)
		return p, true, err
	})
}

// changeDescendant runs a script that makes a session follow one above it, and counts the event that the script may write.
func (s *Store) changeDescendant(ctx context.Context, act kernel.Actor, p place, sc *script, args ...any) (*reply, error) {
	keys := []string{s.keys.Session(p.agent, p.session), s.keys.Events(p.agent), s.keys.Agent(p.agent)}
	args = slices.Concat(args, []any{refusedFor.Milliseconds(), s.core.Audit(ctx, ownActor(act.Organization, p.agent))})
	r, err := s.client.Run(ctx, act.Flow, sc, keys, args...)
	if err == nil && r.Text(0) != "" {
		s.core.Usage.NoteEvent(act.Organization)
	}
	return r, err
}

// suspension is whether a session is suspended, and the version of that.
type suspension struct {
	place
	suspended, version string
}

// suspendBelow makes the descendants of a session follow its suspension, or its end, each the one above it.
func (s *Store) suspendBelow(ctx context.Context, act kernel.Actor, id uuid.UUID, reason string) error {
	r, err := s.client.Fields(ctx, act.Flow, s.keys.Session(act.Agent, id), "r", "sv")
	if err != nil {
		return err
	}
	root := suspension{place{id, act.Agent}, oneIf(strings.Contains(r.Optional(0), "s")), cmp.Or(r.Optional(1), "0")}
	if r.Err != nil {
		return r.Err
	}
	return s.suspendDescendants(ctx, act, root, reason)
}

func (s *Store) suspendDescendants(ctx context.Context, act kernel.Actor, root suspension, reason string) error {
	return descend(ctx, s, act.Flow, []suspension{root}, func(ctx context.Context, above suspension, p place) (suspension, bool, error) {
		r, err := s.changeDescendant(ctx, act, p, suspendDescendant, above.suspended, above.version, reason)
		if err != nil || r.Text(0) == "" {
			return suspension{}, false, err
		}
		return suspension{p, r.Text(1), r.Text(2)}, true, r.Err
	})
}
