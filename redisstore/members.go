package redisstore

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// members is how an index writes ids: their 16 bytes; or, in an agent's cell, the first 14, for the last two are the cell
// that all ids in such an index share. Redis takes half the memory for those. Their order is the same.
type members struct {
	cell string // the bytes that are left out, "" for none
}

// cellBytes is how many bytes at an id's end are its cell.
const cellBytes = 2

// ofCell is how the indexes in the agent's cell write ids; the zero members is how an organization's do.
func ofCell(agent uuid.UUID) members { return members{string(agent[len(agent)-cellBytes:])} }

// of returns the member for the id, which must be of the index's cell.
func (m members) of(id uuid.UUID) []byte { return id[:len(id)-len(m.cell)] }

// id returns the id of a member.
func (m members) id(member string) (uuid.UUID, error) {
	if len(member)+len(m.cell) != len(uuid.UUID{}) {
		return uuid.Nil, fmt.Errorf("%w: a member of %d bytes", errReply, len(member))
	}
	var id uuid.UUID
	copy(id[copy(id[:], member):], m.cell)
	return id, nil
}

// ids returns the ids of the members at i of a reply.
func (m members) ids(r *reply, i int) []uuid.UUID {
	list := r.List(i)
	ids := make([]uuid.UUID, len(list.Values))
	for j := range ids {
		var err error
		if ids[j], err = m.id(list.Text(j)); err != nil && list.Err == nil {
			list.Err = err
		}
	}
	if list.Err != nil {
		r.Err = list.Err
	}
	return ids
}

// below returns the argument of scripts that says where a page starts: "" for the newest.
func (m members) below(before uuid.UUID) string {
	if before == uuid.Nil {
		return ""
	}
	return string(m.of(before))
}

// page reads what the scripts that list one index answer.
func (m members) page(r *reply, err error) ([]uuid.UUID, time.Time, error) {
	if err != nil {
		return nil, time.Time{}, err
	}
	now, ids := r.Time(0), m.ids(r, 1)
	return ids, now, r.Err
}
