package kernel

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// An id is a UUIDv7 (RFC 9562 §5.7) whose last 16 bits are its cell. An agent and everything that belongs to it share one
// cell. The cell is the hash tag of their keys, so they share a slot of a Redis Cluster, and an id alone gives the key's slot.

// IDIn returns a fresh id in the cell.
func IDIn(cell uint16) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	binary.BigEndian.PutUint16(id[14:], cell)
	return id
}

// NewRootID returns a fresh id in a random cell, for an organization or an agent.
func NewRootID() uuid.UUID { return IDIn(uint16(rand.Uint32())) }

// NewID returns a fresh id in the cell of its owner.
func NewID(owner uuid.UUID) uuid.UUID { return IDIn(CellOf(owner)) }

// NewTokenID returns a fresh id for an access token without a refresh token, which names it as its family: a UUIDv8 (RFC 9562 §5.8)
// that differs from other ids in its version, and in 24 bits that say the epoch of its agent (lua/identity/include/in_epoch.lua).
func NewTokenID(agent uuid.UUID) uuid.UUID {
	id := NewID(agent)
	id[6] = tokenID | id[6]&0x07
	return id
}

// NewSessionKeyID is NewTokenID for a session key. Another bit tells it from a token's id, because its session's hash says whether it lives.
func NewSessionKeyID(agent uuid.UUID) uuid.UUID {
	id := NewID(agent)
	id[6] = sessionKeyID | id[6]&0x07
	return id
}

// The least that byte 6 of such ids is: the version, and one bit.
const (
	tokenID      = 0x80
	sessionKeyID = 0x88
)

// IsTokenID says whether an id may be one of NewTokenID.
func IsTokenID(id uuid.UUID) bool { return id[6] >= tokenID && !IsSessionKeyID(id) }

// IsSessionKeyID says whether an id may be one of NewSessionKeyID.
func IsSessionKeyID(id uuid.UUID) bool { return id[6] >= sessionKeyID }

// CellOf returns the cell of an id.
func CellOf(id uuid.UUID) uint16 { return binary.BigEndian.Uint16(id[14:]) }

// AppendID appends the id in its text form (RFC 9562 §4). Every request writes several, and to encode all bytes at once costs less than
// part by part.
func AppendID(text []byte, id uuid.UUID) []byte {
	var digits [32]byte
	hex.Encode(digits[:], id[:])
	written := [36]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	copy(written[:8], digits[:8])
	copy(written[9:13], digits[8:12])
	copy(written[14:18], digits[12:16])
	copy(written[19:23], digits[16:20])
	copy(written[24:], digits[20:])
	return append(text, written[:]...)
}

// MadeAt returns the time in a UUIDv7, by the clock of the instance that generated it.
func MadeAt(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}
