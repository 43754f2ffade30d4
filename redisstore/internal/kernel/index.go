package kernel

import (
	"context"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

var dropDangling = NewScript("kernel/drop_dangling", redisclient.BestEffort)

// Query selects one page of a list, newest first.
type Query struct {
	Limit  int       // entries, from 1 to 200
	Before uuid.UUID // the page starts below this id; uuid.Nil for the newest
	Status Status    // only entries with this status; "" for all
	Agent  uuid.UUID // only this agent's entries; uuid.Nil for all
	// Session lists only this session's transactions; uuid.Nil for all. Other lists ignore it.
	Session uuid.UUID
	// SettledByExpiry lists only transactions whose hold was spent because it expired. Other lists ignore it.
	SettledByExpiry bool
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	Next  uuid.UUID // the Before of the next page; uuid.Nil when this is the last
}

const (
	// ScanLimit bounds how many entries of an index one page reads. If a filter matches few of them, the page is short or
	// even empty, and has a Next.
	ScanLimit = 1000
	// MinChunk is the least number of entries that a filter reads at once, because few of them may match.
	MinChunk = 100
	// CreationTime is how long a reader keeps an index entry without an object after the first reader observed it. The entry
	// is written first: dropping it before the object is written would hide the object from every list.
	CreationTime = time.Hour
	// suspicionTime is how long the time of that first observation is stored.
	suspicionTime = 30 * 24 * time.Hour
)

// Index says how to read one list and how to repair its entries.
type Index[T any] struct {
	Key     string
	Late    *lateIndex // nil for an index that is written together with its objects: an entry without one is obsolete
	Members Members
	Read    func(ctx context.Context, before uuid.UUID, limit int) (ids []uuid.UUID, now time.Time, err error)
	Load    func(ctx context.Context, ids []uuid.UUID, now time.Time) ([]*T, error) // nil for an object that does not exist
	Matches func(*T) bool                                                           // whether the page contains it
	Belongs func(*T) bool                                                           // whether it belongs in this index; nil for always
	Move    func(ctx context.Context, those []*T)                                   // moves those that do not belong
}

// lateIndex is an organization's index that is written before its objects.
type lateIndex struct {
	organization  uuid.UUID
	key, Suspects string
}

// ReadPage reads an index until it has one entry more than the page needs, which means that there is a next page.
func ReadPage[T any](ctx context.Context, s *Core, ix Index[T], q Query) (Page[T], error) {
	var found []T
	var last uuid.UUID // on the page, if there is a next one
	before, chunk := q.Before, q.Limit+1
	if q.Status != "" {
		chunk = max(chunk, MinChunk)
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	for scanned := 0; scanned < ScanLimit; scanned += chunk {
		ids, now, err := ix.Read(ctx, before, chunk)
		if err != nil {
			return Page[T]{}, err
		}
		objects, err := ix.Load(ctx, ids, now)
		if err != nil {
			return Page[T]{}, err
		}
		Repair(ctx, s, ix, ids, objects)
		for i, object := range objects {
			if object != nil && ix.Matches(object) {
				if found == nil {
					found = make([]T, 0, min(len(ids), q.Limit+1))
				}
				if found = append(found, *object); len(found) == q.Limit {
					last = ids[i]
				}
			}
		}
		if len(found) > q.Limit {
			return Page[T]{Items: found[:q.Limit], Next: last}, nil
		}
		if len(ids) < chunk {
			return Page[T]{Items: found}, nil
		}
		before = ids[len(ids)-1]
	}
	return Page[T]{Items: found, Next: before}, nil
}

// Repair drops the entries whose objects are gone, and moves those that belong in another index. Failures are ignored,
// because the next reader repairs the entries that remain.
func Repair[T any](ctx context.Context, s *Core, ix Index[T], ids []uuid.UUID, objects []*T) {
	var gone []uuid.UUID
	var elsewhere []*T
	for i, object := range objects {
		switch {
		case object == nil:
			gone = append(gone, ids[i])
		case ix.Belongs != nil && !ix.Belongs(object):
			elsewhere = append(elsewhere, object)
		}
	}
	if ix.Late != nil {
		s.dropLate(ctx, ix.Late, gone)
	} else {
		s.Drop(ctx, ix.Key, ix.Members, gone...)
	}
	if len(elsewhere) > 0 {
		ix.Move(ctx, elsewhere)
	}
}

// dropLate drops entries that have been without an object for CreationTime, and notes the others. Failures are ignored.
func (s *Core) dropLate(ctx context.Context, ix *lateIndex, dangling []uuid.UUID) {
	if len(dangling) == 0 {
		return
	}
	args := append(make([]any, 0, 2+len(dangling)), CreationTime.Milliseconds(), suspicionTime.Milliseconds())
	for _, id := range dangling {
		args = append(args, id)
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	keys := []string{ix.key, s.Keys.OrganizationClosed(ix.organization), ix.Suspects}
	_, _ = s.Client.Run(ctx, redisclient.Flow{Owner: ix.organization}, dropDangling, keys, args...)
}

// Drop removes entries from an index. Failures are ignored.
func (s *Core) Drop(ctx context.Context, key string, m Members, gone ...uuid.UUID) {
	if len(gone) == 0 {
		return
	}
	entries := make([]any, len(gone))
	for i := range gone {
		entries[i] = m.Of(gone[i])
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	_ = s.Client.Redis().ZRem(ctx, key, entries...).Err()
}

// Status is the state of an agent, a session or a transaction.
type Status string

// An agent is Active or Revoked; a session can be any of these.
const (
	Active    Status = "active"
	Completed Status = "completed" // ended by a caller
	Expired   Status = "expired"   // it reached its expiry
	Revoked   Status = "revoked"   // its agent was revoked
)

var (
	ListOrganization = NewScript("identity/list_organization", redisclient.Reads)
	ListOfAgent      = NewScript("budgets/list_of_agent", redisclient.Reads)
)

// LateIndex returns the organization's index with this key, and the key of its suspects.
func (s *Core) LateIndex(organization uuid.UUID, key, suspects func(uuid.UUID) string) *lateIndex {
	return &lateIndex{organization, key(organization), suspects(organization)}
}

// ReadOrganizationIndex returns what reads a page of an organization's index.
func (s *Core) ReadOrganizationIndex(key APIKey, index string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.RunByKey(ctx, key, s.Proven.Flow(key), ListOrganization, []string{s.Keys.Organization(key.Organization), index},
			key.Credential(), Members{}.Below(before), limit)
		return Members{}.Page(r, err)
	}
}

// ReadAgentIndex returns what reads a page of an index in the actor's cell.
func (s *Core) ReadAgentIndex(act Actor, index string) func(context.Context, uuid.UUID, int) ([]uuid.UUID, time.Time, error) {
	m := OfCell(act.Agent)
	return func(ctx context.Context, before uuid.UUID, limit int) ([]uuid.UUID, time.Time, error) {
		r, err := s.Client.Run(ctx, act.Flow, ListOfAgent, []string{s.Keys.Agent(act.Agent), index},
			act.Organization, act.Family, m.Below(before), limit)
		if act.Family != "" {
			err = act.ErrorFor(err)
		}
		return m.Page(r, err)
	}
}
