package redisstore

import (
	"path"
	"strings"

	"remit/internal/redisclient"
	"remit/lua"
)

// newScript returns the script of this name in package lua, such as "budgets/charge_session". Metrics and traces name it without its room.
func newScript(name string, access redisclient.Access) *script {
	return recording(redisclient.NewScript(path.Base(name), lua.Source(name), access))
}

// newMergedScript is newScript for an operation that many callers run at once, which takes little time: calls of it that share
// a pipeline go as one command. It is not for operations that a full Redis lets through in part; see package lua.
func newMergedScript(name string, access redisclient.Access) *script {
	return newScript(name, access).MergeAs(lua.MergedSource(name))
}

// keyedScript is a script with a variant that takes an idempotency key.
type keyedScript struct {
	*script
	keyed *script
}

// newKeyedScript is newScript for an operation that writes and may have an idempotency key.
func newKeyedScript(name string) keyedScript {
	return keyedScript{newScript(name, writes), recording(redisclient.NewScript(path.Base(name), lua.IdempotentSource(name), writes))}
}

// newMergedKeyedScript is newMergedScript for an operation of newKeyedScript.
func newMergedKeyedScript(name string) keyedScript {
	s := newKeyedScript(name)
	s.script.MergeAs(lua.MergedSource(name))
	s.keyed.MergeAs(lua.MergedIdempotentSource(name))
	return s
}

// newProvenScript returns the variant of a script that also takes a proof, see Store.runProven. It writes, whatever the script
// does.
func newProvenScript(name string) *script {
	return recording(redisclient.NewScript(path.Base(name), lua.ProvenSource(name), writes)).MergeAs(lua.MergedProvenSource(name))
}

// grantScript is a script that issues tokens, with a variant that takes a proof.
type grantScript struct {
	*script
	proven *script
}

func newGrantScript(name string) grantScript {
	return grantScript{newMergedScript(name, writes), newProvenScript(name)}
}

// newSealedScript is newKeyedScript for an operation that issues a credential.
func newSealedScript(name string) keyedScript {
	return keyedScript{newScript(name, writes), recording(redisclient.NewScript(path.Base(name), lua.SealedIdempotentSource(name), writes))}
}

// newDryScript returns what the script of this name would reply; it writes nothing. See Store.dryRun.
func newDryScript(name string) *script {
	return redisclient.NewScript("dry_run", lua.DrySource(name), reads)
}

// recording makes calls of a script that writes into audit trails known to the feeds. (See feeds.before.)
func recording(sc *script) *script {
	if strings.Contains(sc.Source(), "local function record(events, audit") {
		sc.Watched(mayRecord)
	}
	return sc
}
