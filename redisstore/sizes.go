package redisstore

import "github.com/google/uuid"

// Sizes of objects in Redis, in bytes, with their index entries. A test compares the sums with Redis's own figures;
// docs/operations.md lists them.
const (
	agentSize      = 4840 // including the first 4096 bytes of its audit trail
	sessionSize    = 420
	childSize      = 360 // more, of a session with a parent, with what this keeps of it
	familySize     = 255
	eventSize      = 100
	assertionSize  = 120 // one that was used
	proofSize      = 72  // one that was used
	markSize       = 300 // of a token without a refresh token that was revoked by itself
	leaseSize      = 400
	keySize        = 240 // of an idempotency key
	claimSize      = 230 // of its claim in the organization's cell
	beginSize      = 490 // a transaction whose fields are all short
	beginTableSize = 420 // more, with a long field
	inSessionSize  = 400 // more, in a session
	tableSize      = 700 // more, of another hash with a long field

	// Those that scripts count, without their texts: the scripts that write them say the same.
	apiKeySize   = 320
	issuerSize   = 110
	webhookSize  = 130
	deliverySize = 235

	// longField is the longest field, in bytes, for which Redis stores the hash as a listpack (hash-max-listpack-value).
	longField = 64
)

// allocated is the size class, in bytes, in which jemalloc allocates length bytes: four classes per power of two.
func allocated(length int) int64 {
	if length <= 64 {
		return int64(length)
	}
	step := 16
	for step*8 < length+16 {
		step *= 2
	}
	return int64((length + 16 + step - 1) / step * step)
}

// texts returns the bytes of fields whose content callers choose, and adds table if one of them is long.
func texts(table int64, fields ...string) int64 {
	var sum int64
	long := false
	for _, field := range fields {
		sum += allocated(len(field))
		long = long || len(field) > longField
	}
	if long {
		sum += table
	}
	return sum
}

func (s *Store) sessionDemand(n NewSession, organization [16]byte) demand {
	d := demand{
		organization: organization, resource: noResource, events: eventSize,
		bytes: sessionSize + texts(tableSize, n.Metadata, n.scopesText()), retained: n.Lifetime + s.config.Retention,
	}
	if n.Parent != uuid.Nil {
		d.bytes += childSize
		d.events += 2 * eventSize // of its parent's agent: what it was given, and what it has used
	}
	return d
}

func (s *Store) transactionDemand(t AccessToken, n NewTransaction) demand {
	d := demand{
		organization: t.Organization, agent: t.Agent, resource: pendingHeld, lifetime: n.Lifetime, events: eventSize,
		bytes: beginSize + texts(beginTableSize, n.PreState, n.Metadata, n.ActionType), retained: n.Lifetime + s.config.Retention,
	}
	if n.Session != uuid.Nil {
		d.bytes += inSessionSize + int64(len(n.ActionType)) // as it is, and by action type
	}
	return d
}

func agentDemand(organization [16]byte, a Agent, scopes string) demand {
	text := texts(tableSize, a.Name, a.Description, a.Metadata, scopes, audiencesText(a.Audiences), a.JWKS, a.JWKSURI)
	return demand{organization: organization, resource: noResource, bytes: agentSize + text, text: text}
}

func (s *Store) familyDemand(organization, agent [16]byte, asked GrantRequest) demand {
	lifetime := s.config.RefreshLifetime
	return demand{
		organization: organization, agent: agent, resource: familiesHeld, lifetime: lifetime, events: eventSize,
		bytes: familySize + texts(tableSize, asked.scopes(), asked.familyAudience()), retained: lifetime,
	}
}

// keyDemand is the demand of an idempotency key's outcome, or of the claim on the key.
func keyDemand(act actor, idem *Idempotency, bytes int64) demand {
	d := demand{
		organization: act.organization, resource: keysHeld, lifetime: outcomeLifetime,
		bytes: bytes, retained: outcomeLifetime, unpaced: !idem.bounded,
	}
	if act.family != "" {
		d.agent = act.agent
	}
	return d
}

// eventCap is the most bytes that the events of one agent take beyond the part in agentSize.
func (s *Store) eventCap() int64 {
	return max(int64(s.config.EventsKept)*eventSize-4096, 0)
}
