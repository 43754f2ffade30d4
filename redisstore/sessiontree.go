package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// SessionTree is a session with its descendants that are stored.
type SessionTree struct {
	Session
	Children  []*SessionTree // the newest first
	Truncated bool           // it has children that are left out, because the tree has as much as it may without them
}

const (
	// MostInTree is how many sessions a SessionTree has at most: those nearest to its root.
	MostInTree = 1000
	// MostTreeText is how many bytes their texts have: the metadata, the scopes and the reasons of suspensions. It ends with the session
	// that exceeds it.
	MostTreeText = 2 << 20
	// readAtOnce is how many sessions of a tree are in memory before their texts count.
	readAtOnce = 32
)

var listChildren = kernel.NewScript("budgets/list_children", reads)

// Tree returns a session of the caller's organization or agent with its descendants, whosever agent they have. Each is read
// after the one above it. Four trees are read at once; others wait for a second. Errors: ErrInvalidAPIKey or ErrInvalidToken,
// ErrUnknownSession.
func (s *Store) Tree(ctx context.Context, c Caller, id uuid.UUID) (*SessionTree, error) {
	root, err := s.Session(ctx, c, id)
	if err != nil {
		return nil, err
	}
	tree := &SessionTree{Session: root}
	if root.Delegated == nil {
		return tree, nil
	}
	release, err := s.client.Turn(ctx, flow{Owner: c.Owner()})
	if err != nil {
		return nil, err
	}
	defer release()
	reader := treeReader{s, c.Owner(), MostInTree - 1, MostTreeText - textOf(root)}
	for level := []*SessionTree{tree}; len(level) > 0; {
		if level, err = reader.readLevel(ctx, level); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// treeReader reads a tree, within what room it has left.
type treeReader struct {
	*Store
	organization uuid.UUID
	sessions     int
	text         int // bytes
}

func textOf(v Session) int {
	size := len(v.Metadata) + len(v.SuspensionReason)
	for _, scope := range v.Scopes {
		size += len(scope) + len(`"",`)
	}
	return size
}

// listedChild is a child of which only the id is known.
type listedChild struct {
	id     uuid.UUID
	parent *SessionTree
}

// readLevel reads the children of sessions, as far as there is room, and returns them.
func (r *treeReader) readLevel(ctx context.Context, parents []*SessionTree) (level []*SessionTree, err error) {
	parents = slices.DeleteFunc(slices.Clone(parents), func(parent *SessionTree) bool { return parent.Delegated == nil })
	for some := range slices.Chunk(parents, parentsAtOnce) {
		listed, err := r.listChildren(ctx, some)
		if err != nil {
			return nil, err
		}
		for len(listed) > 0 && r.sessions > 0 && r.text >= 0 {
			next := listed[:min(len(listed), r.sessions, readAtOnce)]
			listed = listed[len(next):]
			children, err := r.readChildren(ctx, next)
			if err != nil {
				return nil, err
			}
			level = append(level, children...)
		}
		for _, child := range listed {
			child.parent.Truncated = true
		}
	}
	return level, nil
}

// readChildren reads children and adds them to their parents. One may be on its way, or gone.
func (r *treeReader) readChildren(ctx context.Context, listed []listedChild) (children []*SessionTree, err error) {
	found, err := r.readSome(ctx, kernel.Map(listed, func(child listedChild) uuid.UUID { return child.id }))
	if err != nil {
		return nil, err
	}
	for i, session := range found {
		if session != nil {
			child := &SessionTree{Session: *session}
			listed[i].parent.Children = append(listed[i].parent.Children, child)
			children = append(children, child)
			r.text -= textOf(*session)
		}
	}
	r.sessions -= len(listed)
	return children, nil
}

// readSome reads sessions, with nil for one that does not exist.
func (r *treeReader) readSome(ctx context.Context, ids []uuid.UUID) ([]*Session, error) {
	owners, err := r.client.ReadAll(ctx, flow{Owner: r.organization}, r.keys.Sessions(ids), "a")
	if err != nil {
		return nil, err
	}
	found := make([]*Session, len(ids))
	err = eachOf(ctx, len(ids), func(ctx context.Context, i int) error {
		if owners[i].Optional(0) == "" {
			return owners[i].Err
		}
		session, err := r.readSession(ctx, ownActor(r.organization, owners[i].ID(0)), ids[i])
		if errors.Is(err, ErrUnknownSession) {
			return nil
		}
		found[i] = &session
		return err
	})
	return found, err
}

// listChildren returns the ids of the open and the last closed children of each session, the newest first; without room for any, only
// enough to know which sessions have some.
func (r *treeReader) listChildren(ctx context.Context, parents []*SessionTree) ([]listedChild, error) {
	listed, last := make([][]listedChild, len(parents)), "-1"
	if r.sessions <= 0 || r.text < 0 {
		last = "0"
	}
	err := eachOf(ctx, len(parents), func(ctx context.Context, i int) error {
		keys := []string{r.keys.Looks(parents[i].ID, parents[i].ID), r.keys.ClosedChildren(parents[i].ID, parents[i].ID)}
		found, err := r.client.Run(ctx, flow{Owner: r.organization}, listChildren, keys, last)
		if err != nil {
			return err
		}
		ids := append(kernel.Members{}.Packed(found, found.Text(0)), kernel.Members{}.Packed(found, found.Text(1))...)
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return -slices.Compare(a[:], b[:]) })
		for _, id := range slices.Compact(ids) {
			listed[i] = append(listed[i], listedChild{id, parents[i]})
		}
		return found.Err
	})
	return slices.Concat(listed...), err
}
