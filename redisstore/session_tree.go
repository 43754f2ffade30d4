package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// SessionTree is a session with its descendants that are stored.
type SessionTree struct {
	Session
	Children  []*SessionTree // the newest first
	Truncated bool           // it has children that are left out, because the tree has MostInTree sessions without them
}

// MostInTree is how many sessions a SessionTree has at most: those nearest to its root.
const MostInTree = 1000

// Tree returns a session of the caller's organization or agent with its descendants, whosever agent they have. Each is read
// after the one above it. Errors: ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession.
func (s *Store) Tree(ctx context.Context, c Caller, id uuid.UUID) (*SessionTree, error) {
	root, err := s.Session(ctx, c, id)
	if err != nil {
		return nil, err
	}
	organization := c.organization()
	tree := &SessionTree{Session: root}
	level, room := []*SessionTree{tree}, MostInTree-1
	for len(level) > 0 {
		if level, err = s.readLevel(ctx, organization, level, &room); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

func (c Caller) organization() uuid.UUID {
	if c.Token != nil {
		return c.Token.Organization
	}
	return c.Key.Organization
}

// readLevel reads the children of sessions, at most room, and returns them.
func (s *Store) readLevel(ctx context.Context, organization uuid.UUID, parents []*SessionTree, room *int) ([]*SessionTree, error) {
	listed, err := s.listChildren(ctx, parents)
	if err != nil {
		return nil, err
	}
	var all, above []*SessionTree
	for i, parent := range parents {
		children := listed[i]
		if len(children) > *room {
			children, parent.Truncated = children[:*room], true
		}
		*room -= len(children)
		for _, child := range children {
			all = append(all, &SessionTree{Session: Session{ID: child, Parent: parent.ID}})
			above = append(above, parent)
		}
	}
	found, err := s.readChildren(ctx, organization, all)
	if err != nil {
		return nil, err
	}
	var level []*SessionTree
	for i, child := range all {
		if found[i] {
			above[i].Children = append(above[i].Children, child)
			level = append(level, child)
		}
	}
	return level, nil
}

// readChildren reads sessions of which only the ids are known, and says which exist: one may be on its way, or gone.
func (s *Store) readChildren(ctx context.Context, organization uuid.UUID, children []*SessionTree) ([]bool, error) {
	ids := make([]uuid.UUID, len(children))
	for i, child := range children {
		ids[i] = child.ID
	}
	owners, err := s.client.ReadAll(ctx, flow{Owner: organization}, s.keys.sessions(ids), "a")
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(children))
	err = eachOf(ctx, len(children), func(ctx context.Context, i int) error {
		if owners[i].Optional(0) == "" {
			return owners[i].Err
		}
		session, err := s.readSession(ctx, ownActor(organization, owners[i].ID(0)), ids[i])
		if errors.Is(err, ErrUnknownSession) {
			return nil
		}
		children[i].Session, found[i] = session, err == nil
		return err
	})
	return found, err
}

// listChildren returns the ids of the open and the last closed children of each session, the newest first.
func (s *Store) listChildren(ctx context.Context, parents []*SessionTree) ([][]uuid.UUID, error) {
	var asked []*SessionTree
	for _, parent := range parents {
		if parent.Delegated != nil {
			asked = append(asked, parent)
		}
	}
	open, err := pipelined(ctx, s, asked, func(p redis.Pipeliner, parent *SessionTree) *redis.StringSliceCmd {
		return p.ZRange(ctx, s.keys.looks(parent.ID), 0, -1)
	})
	if err != nil {
		return nil, err
	}
	closed, err := pipelined(ctx, s, asked, func(p redis.Pipeliner, parent *SessionTree) *redis.StringSliceCmd {
		return p.ZRange(ctx, s.keys.closedChildren(parent.ID), 0, -1)
	})
	if err != nil {
		return nil, err
	}
	listed, j := make([][]uuid.UUID, len(parents)), 0
	for i, parent := range parents {
		if parent.Delegated == nil {
			continue
		}
		ids := append(members{}.known(open[j].Val()), members{}.known(closed[j].Val())...)
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return -slices.Compare(a[:], b[:]) })
		listed[i] = slices.Compact(ids)
		j++
	}
	return listed, nil
}
