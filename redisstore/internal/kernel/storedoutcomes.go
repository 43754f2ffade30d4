package kernel

import (
	"strings"

	"github.com/google/uuid"
)

// Scripts encode what Redis stores for an idempotency key: lua/kernel/include/outcomes.lua an outcome or an agent's claim,
// lua/include/claims.lua an organization's claim. Only this file decodes it in Go; replies contain decoded outcomes.

// storedClaim is an organization's claim on an idempotency key.
type storedClaim struct {
	fingerprint [32]byte // of the request that has the key
	cell        uint16   // of its outcome
}

// readClaim reads an organization's claim: fingerprint, request id, cell and organization. It returns false for a text
// without a single cell: the claim of a batch, an outcome.
func readClaim(stored string) (storedClaim, bool) {
	var c storedClaim
	if len(stored) < len(c.fingerprint) {
		return c, false
	}
	parts := strings.Split(stored[copy(c.fingerprint[:], stored):], " ")
	if len(parts) != 3 {
		return c, false
	}
	var valid bool
	c.cell, valid = parseCell(parts[1])
	return c, valid
}

// StoredEnd is how many bytes at the end of an outcome or a claim name its organization.
const StoredEnd = len("00000000-0000-0000-0000-000000000000")

// BelongsTo says whether an outcome or a claim with this end is the organization's. An outcome ends with the 16 bytes of its
// id, a claim with its id as text.
func BelongsTo(end string, organization uuid.UUID) bool {
	return strings.HasSuffix(end, string(organization[:])) || end == organization.String()
}
