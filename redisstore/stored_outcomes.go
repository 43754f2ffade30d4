package redisstore

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// What is stored for an idempotency key is text that scripts write: lua/include/outcomes.lua an outcome or an agent's claim,
// lua/include/claims.lua an organization's claim. This file is all that Go knows of it; replies hold outcomes already decoded.

// storedClaim is an organization's claim on an idempotency key.
type storedClaim struct {
	fingerprint [32]byte // of the request that has the key
	cell        uint16   // where its outcome will be
}

// readClaim reads an organization's claim: fingerprint, request id, cell and organization. It returns false for what has no
// one cell: a batch, a claim by an earlier version, an outcome.
func readClaim(stored string) (storedClaim, bool) {
	var c storedClaim
	if len(stored) < len(c.fingerprint) {
		return c, false
	}
	parts := strings.Split(stored[copy(c.fingerprint[:], stored):], " ")
	if len(parts) != 3 {
		return c, false
	}
	cell, err := hex.DecodeString(parts[1])
	if err != nil || len(cell) != cellBytes {
		return c, false
	}
	c.cell = uint16(cell[0])<<8 | uint16(cell[1])
	return c, true
}

// storedEnd is how many bytes at the end of an outcome or a claim name its organization.
const storedEnd = len("00000000-0000-0000-0000-000000000000")

// belongsTo reports whether a value with this end is the organization's: an outcome ends with its 16 bytes, a claim with its id as text.
func belongsTo(end string, organization uuid.UUID) bool {
	return strings.HasSuffix(end, string(organization[:])) || end == organization.String()
}
