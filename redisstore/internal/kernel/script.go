package kernel

import (
	"path"
	"slices"
	"strings"

	"remit/internal/redisclient"
	"remit/lua"
)

// NewScript returns the script of this name in package lua, such as "budgets/charge_session". Metrics and traces name it without its room.
func NewScript(name string, access redisclient.Access) *redisclient.Script {
	return recording(redisclient.NewScript(path.Base(name), lua.Source(name), access))
}

// NewMergedScript is NewScript for an operation that many callers run at once, which takes little time: calls of it that share
// a pipeline go as one command. It is not for operations that a full Redis lets through in part; see package lua.
func NewMergedScript(name string, access redisclient.Access) *redisclient.Script {
	return NewScript(name, access).MergeAs(lua.MergedSource(name))
}

// KeyedScript is a script with a variant that takes an idempotency key.
type KeyedScript struct {
	*redisclient.Script
	Keyed *redisclient.Script
}

// NewKeyedScript is NewScript for an operation that writes and may have an idempotency key.
func NewKeyedScript(name string) KeyedScript {
	return KeyedScript{NewScript(name, redisclient.Writes), recording(redisclient.NewScript(path.Base(name), lua.IdempotentSource(name), redisclient.Writes))}
}

// NewMergedKeyedScript is NewMergedScript for an operation of NewKeyedScript.
func NewMergedKeyedScript(name string) KeyedScript {
	s := NewKeyedScript(name)
	s.Script.MergeAs(lua.MergedSource(name))
	s.Keyed.MergeAs(lua.MergedIdempotentSource(name))
	return s
}

// NewProvenScript returns the variant of a script that also takes a proof, see runProven in package redisstore. It writes, whatever the script
// does.
func NewProvenScript(name string) *redisclient.Script {
	return recording(redisclient.NewScript(path.Base(name), lua.ProvenSource(name), redisclient.Writes)).MergeAs(lua.MergedProvenSource(name))
}

// GrantScript is a script that issues tokens, with a variant that takes a proof.
type GrantScript struct {
	*redisclient.Script
	Proven *redisclient.Script
}

// NewGrantScript returns the script of this name with both variants.
func NewGrantScript(name string) GrantScript {
	return GrantScript{NewMergedScript(name, redisclient.Writes), NewProvenScript(name)}
}

// NewSealedScript is NewKeyedScript for an operation that issues a credential.
func NewSealedScript(name string) KeyedScript {
	return KeyedScript{NewScript(name, redisclient.Writes), recording(redisclient.NewScript(path.Base(name), lua.SealedIdempotentSource(name), redisclient.Writes))}
}

// NewDryScript returns what the script of this name would reply; it writes nothing. See dryRun in package redisstore.
func NewDryScript(name string) *redisclient.Script {
	return redisclient.NewScript("dry_run", lua.DrySource(name), redisclient.Reads)
}

// recording makes calls of a script that writes into audit trails known to the feeds. See Feeds.before in package feed.
func recording(sc *redisclient.Script) *redisclient.Script {
	if strings.Contains(sc.Source(), "local function record(events, audit") {
		sc.Watched(MayRecord)
	}
	return sc
}

// MayRecord says whether a call that ended so may have written an event.
func MayRecord(_ *redisclient.Reply, err error) bool { return !slices.Contains(writeNothing, err) }

// writeNothing are refusals of which no script writes an event, and which strangers can cause.
var writeNothing = []error{
	ErrUnknownAgent, ErrInvalidCredentials, ErrInvalidToken, ErrInvalidAPIKey, ErrInvalidRefreshToken, ErrUnknownFamily,
	ErrUnknownSession, ErrUnknownTransaction, ErrUnknownLease, ErrUnknownRequest, ErrHoldsDue, ErrAgentHoldsDue,
}

// RecordingIf limits which calls of the operation may have written into an audit trail.
func (k KeyedScript) RecordingIf(may func(*redisclient.Reply, error) bool) KeyedScript {
	k.Script.Watched(may)
	return k
}
