package redisclient

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is a Lua script. Redis knows it by its SHA-1; the client sends the source to a server that does not.
type Script struct {
	name    string // for metrics and traces
	source  []byte
	sha     []byte // in hex
	access  Access
	counted operationID
	merged  *mergedScript            // nil: each call is a command of its own
	changes func(*Reply, error) bool // see Watched; nil for a script that is not watched
}

// NewScript returns a script with this source. Its name is that of its calls in metrics and traces. Call it only while the
// process starts: it registers the name.
func NewScript(name, source string, access Access) *Script {
	sum := sha1.Sum([]byte(source))
	sha := []byte(hex.EncodeToString(sum[:]))
	return &Script{name: name, source: []byte(source), sha: sha, access: access, counted: registerOperation(name)}
}

// Access returns what the script does.
func (s *Script) Access() Access { return s.access }

// Name returns the name under which the script's calls are counted and traced.
func (s *Script) Name() string { return s.name }

// Source returns the script's text.
func (s *Script) Source() string { return string(s.source) }

// SHA returns the script's SHA-1 in hex.
func (s *Script) SHA() string { return string(s.sha) }
