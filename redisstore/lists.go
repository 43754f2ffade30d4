package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Query asks for one page of a list, newest first.
type Query struct {
	Limit  int       // entries, from 1 to 200
	Before uuid.UUID // start below this id; uuid.Nil for the newest
	Status Status    // only these; "" for all
	Agent  uuid.UUID // only this agent's; uuid.Nil for all
	// Session, in a list of transactions: only this session's; uuid.Nil for all.
	Session uuid.UUID
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	Next  uuid.UUID // the Before of the next page; uuid.Nil when this is the last
}

const (
	// scanLimit bounds how many entries of an index one page looks at. A filter that matches few of them gives a short
	// page, even an empty one, with a Next.
	scanLimit = 1000
	// minChunk is how many entries a filter looks at at once, however few are asked for: it may pass over most of them.
	minChunk = 100
	// creationTime is how long an index entry may wait for its object, from when somebody first saw it without one. The
	// index is written first; dropping an entry while its object is on its way would lose the object to every list.
	creationTime = time.Hour
	// suspicionTime is how long the time of that first sight is kept.
	suspicionTime = 30 * 24 * time.Hour
)

var (
	listOrganization = newScript("list_organization", reads)
	listOfAgent      = newScript("list_of_agent", reads)
	dropDangling     = newScript("drop_dangling", tidies)
)

// Agents returns a page of the organization's agents. Errors: ErrInvalidAPIKey.
func (s *Store) Agents(ctx context.Context, key APIKey, q Query) (Page[Agent], error) {
	ix := index[Agent]{
		key:  s.keys.organizationAgents(key.Organization),
		late: s.lateIndex(key.Organization, s.keys.organizationAgents, s.keys.suspectAgents),
		read: s.readOrganizationIndex(key, s.keys.organizationAgents(key.Organization)),
		load: func(ctx context.Context, ids []uuid.UUID, _ time.Time) ([]*Agent, error) {
			return s.loadAgents(ctx, key.Organization, ids)
		},
		id:    func(a *Agent) uuid.UUID { return a.ID },
		wants: func(a *Agent) bool { return q.Status == "" || a.Status() == q.Status },
	}
	return page(ctx, s, ix, q)
}

// Sessions returns a page of the sessions that the caller may see. Errors: ErrInvalidAPIKey or ErrInvalidToken;
// ErrUnknownAgent when the query names an agent that the caller may not see.
func (s *Store) Sessions(ctx context.Context, c Caller, q Query) (Page[Session], error) {
	var ix index[Session]
	switch {
	case c.Token != nil && q.Agent == uuid.Nil:
		q.Agent = c.Token.Agent
		fallthrough
	case q.Agent != uuid.Nil:
		act, err := s.actOnAgent(ctx, c, q.Agent, nil)
		if err != nil {
			return Page[Session]{}, err
		}
		ix = s.sessionsOf(act)
		ix.read = s.readAgentIndex(act, ix.key)
	case q.Status == Active:
		ix = s.openSessions(c.Key.Organization)
		ix.read = s.readActiveSessions(*c.Key)
	default:
		ix = s.closedSessions(c.Key.Organization)
		ix.read = s.readAllSessions(*c.Key)
	}
	ix.id = func(v *Session) uuid.UUID { return v.ID }
	ix.wants = func(v *Session) bool { return q.Status == "" || v.Status == q.Status }
	return page(ctx, s, ix, q)
}

// index is how one list is read, and how its entries are kept right.
type index[T any] struct {
	key     string
	late    *lateIndex // nil for an index that is written with its objects: an entry without one was of one that is gone
	members members
	read    func(ctx context.Context, before uuid.UUID, limit int) (ids []uuid.UUID, now time.Time, err error)
	load    func(ctx context.Context, ids []uuid.UUID, now time.Time) ([]*T, error) // nil for what does not exist
	id      func(*T) uuid.UUID
	wants   func(*T) bool                         // whether the page shows it
	keeps   func(*T) bool                         // whether it stays in this index; nil for always
	move    func(ctx context.Context, those []*T) // takes those that do not
}

// lateIndex is an organization's index that is written before its objects.
type lateIndex struct {
	organization  uuid.UUID
	key, suspects string
}

func (s *Store) lateIndex(organization uuid.UUID, key, suspects func(uuid.UUID) string) *lateIndex {
	return &lateIndex{organization, key(organization), suspects(organization)}
}

// page reads an index until it has one more entry than the page holds, which tells that there is a next page.
func page[T any](ctx context.Context, s *Store, ix index[T], q Query) (Page[T], error) {
	var found []T
	before, chunk := q.Before, q.Limit+1
	if q.Status != "" {
		chunk = max(chunk, minChunk)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for scanned := 0; scanned < scanLimit; scanned += chunk {
		ids, now, err := ix.read(ctx, before, chunk)
		if err != nil {
			return Page[T]{}, err
		}
		objects, err := ix.load(ctx, ids, now)
		if err != nil {
			return Page[T]{}, err
		}
		repair(ctx, s, ix, ids, objects)
		for _, object := range objects {
			if object != nil && ix.wants(object) {
				found = append(found, *object)
			}
		}
		if len(found) > q.Limit {
			return Page[T]{Items: found[:q.Limit], Next: ix.id(&found[q.Limit-1])}, nil
		}
		if len(ids) < chunk {
			return Page[T]{Items: found}, nil
		}
		before = ids[len(ids)-1]
	}
	return Page[T]{Items: found, Next: before}, nil
}

// repair drops the entries whose objects are gone, and moves those that do not belong in this index. It does what it can:
// an entry that stays is met by the next reader.
func repair[T any](ctx context.Context, s *Store, ix index[T], ids []uuid.UUID, objects []*T) {
	var gone []uuid.UUID
	var elsewhere []*T
	for i, object := range objects {
		switch {
		case object == nil:
			gone = append(gone, ids[i])
		case ix.keeps != nil && !ix.keeps(object):
			elsewhere = append(elsewhere, object)
		}
	}
	if ix.late != nil {
		s.dropLate(ctx, ix.late, gone)
	} else {
		s.drop(ctx, ix.key, ix.members, gone...)
	}
	if len(elsewhere) > 0 {
		ix.move(ctx, elsewhere)
	}
}

// dropLate drops entries without an object that no object will come for any more, and notes the others, if it can.
func (s *Store) dropLate(ctx context.Context, ix *lateIndex, dangling []uuid.UUID) {
	if len(dangling) == 0 {
		return
	}
	args := append(make([]any, 0, 2+len(dangling)), creationTime.Milliseconds(), suspicionTime.Milliseconds())
	for _, id := range dangling {
		args = append(args, id)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys := []string{ix.key, s.keys.organizationClosed(ix.organization), ix.suspects}
	_, _ = s.client.Run(ctx, flow{Owner: ix.organization}, dropDangling, keys, args...)
}

// drop takes entries out of an index, if it can.
func (s *Store) drop(ctx context.Context, key string, m members, gone ...uuid.UUID) {
	if len(gone) == 0 {
		return
	}
	entries := make([]any, len(gone))
	for i := range gone {
		entries[i] = m.of(gone[i])
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_ = s.client.Redis().ZRem(ctx, key, entries...).Err()
}

func (s *Store) readOrganizationIndex(key APIKey, index string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.runByKey(ctx, key, s.proven.flow(key), listOrganization, []string{s.keys.organization(key.Organization), index},
			key.Hash, members{}.below(before), limit)
		return members{}.page(r, err)
	}
}

func (s *Store) readAgentIndex(act actor, index string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	m := ofCell(act.agent)
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.client.Run(ctx, act.flow, listOfAgent, []string{s.keys.agent(act.agent), index},
			act.organization, act.family, m.below(before), limit)
		if act.family != "" {
			err = act.refusedTo(err)
		}
		return m.page(r, err)
	}
}
