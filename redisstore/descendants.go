package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

var (
	endDescendant     = newScript("end_descendant", writes)
	enforceDescendant = newScript("enforce_descendant", writes)
	shortenDescendant = newScript("shorten_descendant", writes)
	suspendDescendant = newScript("suspend_descendant", writes)
)

// openChild is a session for which another has a part.
type openChild struct {
	place
	above place
	taken bool // its usage has replaced what was set aside
}

// descend calls do for every open descendant of a session, parents before their children, and returns all parts by level. It reads
// a session's parts after do has returned for it, so when do has made the session refuse new children, it misses none.
func (s *Store) descend(ctx context.Context, root place, do func(context.Context, place) error) ([][]openChild, error) {
	var levels [][]openChild
	for level := []place{root}; ; {
		next, err := s.childrenOf(ctx, level)
		if err != nil || len(next) == 0 {
			return levels, err
		}
		levels = append(levels, next)
		level = stillAside(next)
		err = eachOf(ctx, len(level), func(ctx context.Context, i int) error { return do(ctx, level[i]) })
		if err != nil {
			return levels, err
		}
	}
}

// stillAside returns the children whose usage nobody has taken.
func stillAside(children []openChild) []place {
	var places []place
	for _, child := range children {
		if !child.taken {
			places = append(places, child.place)
		}
	}
	return places
}

// childrenOf returns the children for which the sessions have parts.
func (s *Store) childrenOf(ctx context.Context, of []place) ([]openChild, error) {
	if len(of) == 0 {
		return nil, nil
	}
	read, err := pipelined(ctx, s, of, func(p redis.Pipeliner, of place) *redis.MapStringStringCmd {
		return p.HGetAll(ctx, s.keys.parts(of.session))
	})
	if err != nil {
		return nil, err
	}
	var children []openChild
	for i, parts := range read {
		for member, part := range parts.Val() {
			child, err := members{}.id(member)
			if err != nil {
				return nil, err
			}
			agent, taken, err := readPart(part)
			if err != nil {
				return nil, err
			}
			children = append(children, openChild{place{child, agent}, of[i], taken})
		}
	}
	return children, nil
}

// endBelow ends every descendant of a session that has ended, and then gives their parts back as far as that goes. Errors:
// ErrUnavailable; then some may live, and the same request goes on.
func (s *Store) endBelow(ctx context.Context, organization uuid.UUID, root place) error {
	levels, err := s.descend(ctx, root, func(ctx context.Context, p place) error {
		return s.endOne(ctx, organization, p)
	})
	if err != nil {
		return fmt.Errorf("%w: the session is ended, and not all of its descendants are: %v", ErrUnavailable, err)
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for i := len(levels) - 1; i >= 0; i-- {
		_ = eachOf(ctx, len(levels[i]), func(ctx context.Context, j int) error {
			child := levels[i][j]
			_, _ = s.settlePart(ctx, organization, child.above, child.place, child.taken)
			return nil
		})
	}
	return nil
}

func (s *Store) endOne(ctx context.Context, organization uuid.UUID, p place) error {
	act := ownActor(organization, p.agent)
	keys := []string{s.keys.agent(p.agent), s.keys.session(p.agent, p.session), s.keys.holds(p.agent, p.session), s.keys.events(p.agent),
		s.keys.agentOpen(p.agent)}
	r, err := s.releasingDueHolds(ctx, act, p.session, func() (*reply, error) {
		return s.client.Run(ctx, act.flow, endDescendant, keys, refusedFor.Milliseconds(), s.audit(ctx, act))
	})
	if err != nil {
		return err
	}
	if r.Text(0) != "" {
		s.usage.noteEvent(organization)
	}
	return r.Err
}

// The flags of a session that are read here; see include/restrict.lua.
const (
	hasChildren = "c"
	keptAbove   = "k"
)

// endTree ends the descendants of a session that has ended, and settles it.
func (s *Store) endTree(ctx context.Context, act actor, id uuid.UUID, flags string) error {
	p := place{id, act.agent}
	if strings.Contains(flags, hasChildren) {
		if err := s.endBelow(ctx, act.organization, p); err != nil {
			return err
		}
	}
	if strings.Contains(flags, keptAbove) {
		ctx, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		_, _ = s.settleOver(ctx, act.organization, p) // else the next request that needs its part settles it
	}
	return nil
}

// shortenBelow makes no descendant of a session last longer than the session. Errors: ErrUnavailable; then some may last longer, and
// the same request goes on.
func (s *Store) shortenBelow(ctx context.Context, organization uuid.UUID, root place) error {
	last, err := s.client.Call(ctx, flow{Owner: organization}, reads, "hget", s.keys.session(root.agent, root.session), "x")
	expires, isText := last.(string)
	if err == nil && isText {
		_, err = s.descend(ctx, root, func(ctx context.Context, p place) error {
			act := ownActor(organization, p.agent)
			keys := []string{s.keys.session(p.agent, p.session), s.keys.agentOpen(p.agent)}
			_, err := s.client.Run(ctx, act.flow, shortenDescendant, keys, expires, refusedFor.Milliseconds())
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%w: the session is changed, and not all of its descendants are: %v", ErrUnavailable, err)
	}
	return nil
}

// enforceBelow makes every descendant of a session that enforces its limits do so too. Errors: ErrUnavailable; then some may
// observe, and the same request goes on.
func (s *Store) enforceBelow(ctx context.Context, organization uuid.UUID, root place) error {
	_, err := s.descend(ctx, root, func(ctx context.Context, p place) error {
		act := ownActor(organization, p.agent)
		keys := []string{s.keys.session(p.agent, p.session), s.keys.events(p.agent), s.keys.agent(p.agent)}
		r, err := s.client.Run(ctx, act.flow, enforceDescendant, keys, refusedFor.Milliseconds(), s.audit(ctx, act))
		if err == nil && r.Text(0) != "" {
			s.usage.noteEvent(organization)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: the session enforces its limits, and not all of its descendants do: %v", ErrUnavailable, err)
	}
	return nil
}

// narrowBelow makes the descendants of a session follow a change of its limits.
func (s *Store) narrowBelow(ctx context.Context, organization uuid.UUID, root place, n NewLimits) error {
	if n.Lifetime != nil {
		if err := s.shortenBelow(ctx, organization, root); err != nil {
			return err
		}
	}
	if n.Observes != nil && !*n.Observes {
		return s.enforceBelow(ctx, organization, root)
	}
	return nil
}

// suspension is whether a session is suspended, and the version of that.
type suspension struct {
	place
	suspended, version string
}

// suspendBelow makes the descendants of a session follow its suspension, or its end. Errors: ErrUnavailable; then some may not
// follow, and the same request goes on.
func (s *Store) suspendBelow(ctx context.Context, act actor, id uuid.UUID, reason string) error {
	found, err := s.client.Call(ctx, act.flow, reads, "hmget", s.keys.session(act.agent, id), "r", "sv")
	values, ok := found.([]any)
	if err == nil && (!ok || len(values) != 2) {
		err = errReply
	}
	if err == nil {
		r := &reply{Values: values}
		is := suspension{place: place{id, act.agent}, version: cmp.Or(r.Optional(1), "0")}
		if strings.Contains(r.Optional(0), "s") {
			is.suspended = "1"
		}
		err = cmp.Or(r.Err, s.suspendChildren(ctx, act.organization, is, reason))
	}
	if err != nil {
		return fmt.Errorf("%w: the session is changed, and not all of its descendants are: %v", ErrUnavailable, err)
	}
	return nil
}

// suspendChildren makes the children of a session follow it, and then theirs. A tree is at most 8 deep.
func (s *Store) suspendChildren(ctx context.Context, organization uuid.UUID, above suspension, reason string) error {
	parts, err := s.childrenOf(ctx, []place{above.place})
	if err != nil {
		return err
	}
	children := stillAside(parts)
	return eachOf(ctx, len(children), func(ctx context.Context, i int) error {
		p := children[i]
		act := ownActor(organization, p.agent)
		keys := []string{s.keys.session(p.agent, p.session), s.keys.events(p.agent), s.keys.agent(p.agent)}
		r, err := s.client.Run(ctx, act.flow, suspendDescendant, keys,
			above.suspended, above.version, reason, refusedFor.Milliseconds(), s.audit(ctx, act))
		if err != nil || r.Text(0) == "" {
			return err
		}
		s.usage.noteEvent(organization)
		return s.suspendChildren(ctx, organization, suspension{p, r.Text(1), r.Text(2)}, reason)
	})
}
