package redisstore

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// members is how an index encodes ids: as their 16 bytes; or, in an agent's cell, as the first 14, because all ids in such
// an index end with the same cell. The short form takes half the memory in Redis and has the same order.
type members struct {
	cell string // the bytes that members omit, "" for none
}

// cellBytes is how many bytes at an id's end are its cell.
const cellBytes = 2

// ofCell returns the encoding of the indexes in the agent's cell. Indexes of an organization use the zero members.
func ofCell(agent uuid.UUID) members { return members{string(agent[len(agent)-cellBytes:])} }

// of returns the member for the id, which must be in the index's cell.
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

// packed returns the ids of members that stand one behind the other in a text.
func (m members) packed(r *reply, text string) []uuid.UUID {
	size := len(uuid.UUID{}) - len(m.cell)
	ids := make([]uuid.UUID, 0, len(text)/size)
	for ; text != ""; text = text[min(size, len(text)):] {
		id, err := m.id(text[:min(size, len(text))])
		if err != nil {
			r.Err = err
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// below returns the start of a page as scripts take it, "" for the newest.
func (m members) below(before uuid.UUID) string {
	if before == uuid.Nil {
		return ""
	}
	return string(m.of(before))
}

// page reads the reply of a script that lists one index.
func (m members) page(r *reply, err error) ([]uuid.UUID, time.Time, error) {
	if err != nil {
		return nil, time.Time{}, err
	}
	now, ids := r.Time(0), m.packed(r, r.Text(1))
	return ids, now, r.Err
}
