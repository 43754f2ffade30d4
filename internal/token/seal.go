package token

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
)

// AnswerSeal encrypts the credential in a stored idempotent response with AES-256-GCM. Its key is derived (HKDF-SHA256,
// RFC 5869) from a secret of the caller that is not stored, so that readers of the store cannot decrypt it.
type AnswerSeal struct {
	aead cipher.AEAD
	name string
}

// NewAnswerSeal returns the seal for the response to one request, by the caller's secret and the request's idempotency key.
func NewAnswerSeal(secret, idempotencyKey string) *AnswerSeal {
	return &AnswerSeal{derivedAEAD([]byte(secret), []byte(idempotencyKey), "remit credential in a repeated answer"), idempotencyKey}
}

// derivedAEAD returns AES-256-GCM under a key that is derived from a secret for one purpose.
func derivedAEAD(secret, salt []byte, purpose string) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, secret, salt, purpose, 32)
	if err != nil {
		panic(err) // only for keys that are too long
	}
	return newAEAD(key)
}

// newAEAD returns AES-256-GCM under a key of 32 bytes.
func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for keys of another size
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // never for AES
	}
	return aead
}

// Seal returns the credential in the form to store.
func (s *AnswerSeal) Seal(credential string) string {
	return string(s.aead.Seal(nil, nil, []byte(credential), []byte(s.name)))
}

// Open returns the credential that a seal with the same secret and idempotency key has sealed, and false for anything else.
func (s *AnswerSeal) Open(sealed string) (string, bool) {
	credential, err := s.aead.Open(nil, nil, []byte(sealed), []byte(s.name))
	return string(credential), err == nil
}
