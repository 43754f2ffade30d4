package kernel

// Sizes of objects in Redis, in bytes, with their index entries. A test compares the sums with Redis's own figures;
// docs/operations.md lists them.
const (
	AgentSize      = 4840 // including the first 4096 bytes of its audit trail
	SessionSize    = 420
	ChildSize      = 360 // more, of a session with a parent, with what this keeps of it
	FamilySize     = 255
	EventSize      = 100
	AssertionSize  = 120 // one that was used
	ProofSize      = 72  // one that was used
	MarkSize       = 300 // of a token without a refresh token that was revoked by itself
	LeaseSize      = 400
	SessionKeySize = 300 // of a session key, without its name
	keySize        = 240 // of an idempotency key
	claimSize      = 230 // of its claim in the organization's cell
	BeginSize      = 490 // a transaction whose fields are all short
	BeginTableSize = 420 // more, with a long field
	InSessionSize  = 400 // more, in a session
	TableSize      = 700 // more, of another hash with a long field

	// Those that scripts count, without their texts: the scripts that write them say the same.
	APIKeySize   = 320
	IssuerSize   = 110
	WebhookSize  = 130
	DeliverySize = 235

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

// Texts returns the bytes of fields whose content callers choose, and adds table if one of them is long.
func Texts(table int64, fields ...string) int64 {
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

// keyDemand is the demand of an idempotency key's outcome, or of the claim on the key.
func keyDemand(act Actor, idem *Idempotency, bytes int64) Demand {
	d := Demand{
		Organization: act.Organization, Resource: keysHeld, Lifetime: OutcomeLifetime,
		Bytes: bytes, Retained: OutcomeLifetime, Unpaced: !idem.Bounded,
	}
	if act.Family != "" {
		d.Agent = act.Agent
	}
	return d
}

// eventCap is the most bytes that the events of one agent take beyond the part in AgentSize.
func (s *Core) eventCap() int64 {
	return max(int64(s.config.EventsKept)*EventSize-4096, 0)
}
