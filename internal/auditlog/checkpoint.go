package auditlog

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
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

// ReadCheckpoint reads a checkpoint without looking at its signature.
func ReadCheckpoint(jws string) (Checkpoint, error) {
	_, payload, _, err := parts(jws)
	if err != nil {
		return Checkpoint{}, err
	}
	var c Checkpoint
	if err := json.Unmarshal(payload, &c); err != nil {
		return Checkpoint{}, ErrCheckpoint
	}
	return c, nil
}

// VerifyCheckpoint reads a checkpoint that one of the keys has signed. keys is a JSON Web Key Set (RFC 7517), as
// /.well-known/jwks.json has it.
func VerifyCheckpoint(jws string, keys []byte) (Checkpoint, error) {
	head, _, signature, err := parts(jws)
	if err != nil {
		return Checkpoint{}, err
	}
	var set struct {
		Keys []publicKey `json:"keys"`
	}
	if err := json.Unmarshal(keys, &set); err != nil {
		return Checkpoint{}, fmt.Errorf("the keys: %w", err)
	}
	signed := []byte(jws[:strings.LastIndexByte(jws, '.')])
	for _, key := range set.Keys {
		if key.ID == head.Key && key.hasSigned(head.Algorithm, signed, signature) {
			return ReadCheckpoint(jws)
		}
	}
	return Checkpoint{}, ErrSignature
}

// Check compares an export with a checkpoint: ErrMismatch unless it ends with the checkpoint's event.
func (r Result) Check(c Checkpoint) error {
	if r.Last != c.Sequence || r.Hash != c.Hash && c.Sequence != 0 {
		return fmt.Errorf("%w: the export ends with event %d of hash %s, the checkpoint with %d of %s", ErrMismatch, r.Last, r.Hash, c.Sequence, c.Hash)
	}
	return nil
}

type header struct {
	Algorithm string `json:"alg"`
	Type      string `json:"typ"`
	Key       string `json:"kid"`
}

func parts(jws string) (head header, payload, signature []byte, err error) {
	texts := strings.Split(jws, ".")
	if len(texts) != 3 {
		return head, nil, nil, ErrCheckpoint
	}
	var decoded [3][]byte
	for i, text := range texts {
		if decoded[i], err = base64.RawURLEncoding.DecodeString(text); err != nil {
			return head, nil, nil, ErrCheckpoint
		}
	}
	if json.Unmarshal(decoded[0], &head) != nil || head.Type != checkpointType {
		return head, nil, nil, ErrCheckpoint
	}
	return head, decoded[1], decoded[2], nil
}

// publicKey is a key of a set. Its own type says how it signs, never the header of what it has signed.
type publicKey struct {
	ID  string `json:"kid"`
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Y   string `json:"y"`
	N   string `json:"n"`
	E   string `json:"e"`
}

func (k publicKey) hasSigned(algorithm string, text, signature []byte) bool {
	sum := sha256.Sum256(text)
	switch k.Kty + " " + k.Crv + " " + algorithm {
	case "OKP Ed25519 EdDSA":
		x := bytesOf(k.X)
		return len(x) == ed25519.PublicKeySize && ed25519.Verify(x, text, signature)
	case "EC P-256 ES256":
		uncompressed := slices.Concat([]byte{4}, bytesOf(k.X), bytesOf(k.Y)) // SEC 1, section 2.3.3
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), uncompressed)
		if err != nil || len(signature) != 64 {
			return false
		}
		r, s := new(big.Int), new(big.Int)
		return ecdsa.Verify(key, sum[:], r.SetBytes(signature[:32]), s.SetBytes(signature[32:]))
	case "RSA  RS256":
		exponent := numberOf(k.E)
		key := rsa.PublicKey{N: numberOf(k.N), E: int(exponent.Int64())}
		return exponent.IsInt64() && rsa.VerifyPKCS1v15(&key, crypto.SHA256, sum[:], signature) == nil
	}
	return false
}

func bytesOf(text string) []byte {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return decoded
}

func numberOf(text string) *big.Int { return new(big.Int).SetBytes(bytesOf(text)) }
