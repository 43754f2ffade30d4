package auditlog

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"remit/internal/token"
)

// Checkpoint is what the service says in a checkpoint: with which event an organization's events end.
type Checkpoint struct {
	Issuer       string `json:"iss"`
	Organization string `json:"org_id"`
	Sequence     int64  `json:"seq"`
	Hash         string `json:"hash"` // of the last event: SHA-256, in hex; "" for none
	Issued       int64  `json:"iat"`  // seconds since 1970
}

// Errors of VerifyCheckpoint and Result.Check.
var (
	ErrCheckpoint = errors.New("this is no checkpoint")
	ErrSignature  = errors.New("none of the issuer's keys has signed the checkpoint")
	ErrMismatch   = errors.New("the export and its checkpoint differ")
)

// checkpointType is the typ of a checkpoint; access tokens have another.
const checkpointType = "remit-checkpoint+jwt"

// maxKeys bounds the keys of a set that are tried, beyond every set of the service.
const maxKeys = 100

// ReadCheckpoint reads a checkpoint without looking at its signature.
func ReadCheckpoint(jws string) (Checkpoint, error) {
	texts := strings.Split(jws, ".")
	if len(texts) != 3 {
		return Checkpoint{}, ErrCheckpoint
	}
	var head struct {
		Type string `json:"typ"`
	}
	var c Checkpoint
	for i, into := range []any{&head, &c, nil} {
		text, err := base64.RawURLEncoding.DecodeString(texts[i])
		if err != nil || into != nil && json.Unmarshal(text, into) != nil {
			return Checkpoint{}, ErrCheckpoint
		}
	}
	if head.Type != checkpointType {
		return Checkpoint{}, ErrCheckpoint
	}
	return c, nil
}

// VerifyCheckpoint reads a checkpoint that one of the keys has signed. keys is a JSON Web Key Set (RFC 7517), as
// /.well-known/jwks.json has it.
func VerifyCheckpoint(jws string, keys []byte) (Checkpoint, error) {
	c, err := ReadCheckpoint(jws)
	if err != nil {
		return Checkpoint{}, err
	}
	set, err := token.ReadJWKS(keys, maxKeys)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	signed, err := token.ParseAssertion(jws)
	if err != nil || signed.Verify(set) != nil {
		return Checkpoint{}, ErrSignature
	}
	return c, nil
}

// Check compares an export with a checkpoint: ErrMismatch unless it ends with the checkpoint's event.
func (r Result) Check(c Checkpoint) error {
	if r.Last != c.Sequence || r.Hash != c.Hash && c.Sequence != 0 {
		return fmt.Errorf("%w: the export ends with event %d of hash %s, the checkpoint with %d of %s", ErrMismatch, r.Last, r.Hash, c.Sequence, c.Hash)
	}
	return nil
}
