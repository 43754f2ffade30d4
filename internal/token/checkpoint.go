package token

import (
	"time"

	"github.com/goccy/go-json"
	"github.com/google/uuid"
)

// checkpointExpiry is in every checkpoint, in seconds since 1970: many verifiers of tokens look at no typ, and take a JWT without an end
// for one without limit. To them a checkpoint has long expired.
const checkpointExpiry = 1

// checkpointType is the typ of a checkpoint. It differs from that of access tokens, so neither passes for the other.
const checkpointType = "remit-checkpoint+jwt"

// Checkpoint says with which event an organization's events end.
type Checkpoint struct {
	Organization uuid.UUID
	Sequence     int64     // number of the last event, 0 for none
	Hash         string    // SHA-256 of that event, in hex, "" for none
	Issued       time.Time // to the second
}

// SignCheckpoint returns the checkpoint as a JWS in its compact form (RFC 7515 §7.1).
func (k *Keyring) SignCheckpoint(c Checkpoint) (string, error) {
	key := k.signing[0]
	header, err := encodeHeader(key.method.Alg(), checkpointType, key.id)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(struct {
		Issuer       string    `json:"iss"`
		Organization uuid.UUID `json:"org_id"`
		Sequence     int64     `json:"seq"`
		Hash         string    `json:"hash"`
		Issued       int64     `json:"iat"`
		Expiry       int64     `json:"exp"`
	}{k.issuer, c.Organization, c.Sequence, c.Hash, c.Issued.Unix(), checkpointExpiry})
	if err != nil {
		return "", err
	}
	text := header + "." + encode(payload)
	signature, err := key.method.Sign(text, key.private)
	if err != nil {
		return "", err
	}
	return text + "." + encode(signature), nil
}
