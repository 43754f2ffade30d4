package kernel

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// Members is how an index encodes ids: as their 16 bytes; or, in an agent's cell, as the first 14, because all ids in such
// an index end with the same cell. The short form takes half the memory in Redis and has the same order.
type Members struct {
	Cell string // the bytes that members omit, "" for none
}

// cellBytes is how many bytes at an id's end are its cell.
const cellBytes = 2

// OfCell returns the encoding of the indexes in the agent's cell. Indexes of an organization use the zero members.
func OfCell(agent uuid.UUID) Members { return Members{string(agent[len(agent)-cellBytes:])} }

// Of returns the member for the id, which must be in the index's cell.
func (m Members) Of(id uuid.UUID) []byte { return id[:len(id)-len(m.Cell)] }

// ID returns the id of a member.
func (m Members) ID(member string) (uuid.UUID, error) {
	if len(member)+len(m.Cell) != len(uuid.UUID{}) {
		return uuid.Nil, fmt.Errorf("%w: a member of %d bytes", redisclient.ErrReply, len(member))
	}
	var id uuid.UUID
	copy(id[copy(id[:], member):], m.Cell)
	return id, nil
}

// IDs returns the ids of the members at i of a reply.
func (m Members) IDs(r *redisclient.Reply, i int) []uuid.UUID {
	list := r.List(i)
	ids := make([]uuid.UUID, len(list.Values))
	for j := range ids {
		var err error
		if ids[j], err = m.ID(list.Text(j)); err != nil && list.Err == nil {
			list.Err = err
		}
	}
	if list.Err != nil {
		r.Err = list.Err
	}
	return ids
}

// Packed returns the ids of members that stand one behind the other in a text.
func (m Members) Packed(r *redisclient.Reply, text string) []uuid.UUID {
	size := len(uuid.UUID{}) - len(m.Cell)
	ids := make([]uuid.UUID, 0, len(text)/size)
	for ; text != ""; text = text[min(size, len(text)):] {
		id, err := m.ID(text[:min(size, len(text))])
		if err != nil {
			r.Err = err
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// Below returns the start of a page as scripts take it, "" for the newest.
func (m Members) Below(before uuid.UUID) string {
	if before == uuid.Nil {
		return ""
	}
	return string(m.Of(before))
}

// Page reads the reply of a script that lists one index.
func (m Members) Page(r *redisclient.Reply, err error) ([]uuid.UUID, time.Time, error) {
	if err != nil {
		return nil, time.Time{}, err
	}
	now, ids := r.Time(0), m.Packed(r, r.Text(1))
	return ids, now, r.Err
}

// Known returns the ids of members, without members that encode no id.
func (m Members) Known(entries []string) []uuid.UUID {
	ids := make([]uuid.UUID, 0, len(entries))
	for _, entry := range entries {
		if id, err := m.ID(entry); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
