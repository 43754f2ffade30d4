package event

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	json "github.com/goccy/go-json/v2"
	"github.com/google/uuid"
)

// InFeed is an event in the feed of its organization.
type InFeed struct {
	Event

	Sequence int64  `json:"seq"`           // from 1, without gaps
	Previous string `json:"previous_hash"` // Hash of the JSON of the event before
}

// InFeed completes an event of an agent's trail for the feed. The agent's id may be that of the organization itself.
func (e Event) InFeed(organization, agent uuid.UUID, sequence int64, previous string) InFeed {
	e.Complete(organization, agent)
	e.ID = agent.String() + ":" + e.ID // an agent's ids are its own
	if agent == organization {
		e.Agent = uuid.Nil
	}
	return InFeed{e, sequence, previous}
}

// JSON returns the event in one line.
func (e InFeed) JSON() ([]byte, error) { return json.Marshal(e) }

// Hash returns the SHA-256 of an event's JSON, in hex.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// NoHash is what the first event has as the hash of the one before.
var NoHash = strings.Repeat("0", 2*sha256.Size)
