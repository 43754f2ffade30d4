package token

import (
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"strings"
)

// KeyEncryptionKey encrypts stored keys with AES-256-GCM (NIST SP 800-38D).
type KeyEncryptionKey struct{ aead cipher.AEAD }

const (
	sealedMark = "sealed:"
	plainMark  = "plain:"
)

// ParseKeyEncryptionKey reads a key from the base64 of 32 bytes. It ignores surrounding white space and returns ErrKey for
// anything else.
func ParseKeyEncryptionKey(text []byte) (*KeyEncryptionKey, error) {
	secret, err := parseKeyFile(text)
	if err != nil {
		return nil, err
	}
	return &KeyEncryptionKey{newAEAD(secret)}, nil
}

// Seal returns the material of a key in the form to store: encrypted and bound to the key's name, so that records cannot be
// swapped. Without a key encryption key (nil) the material is stored unencrypted.
func (k *KeyEncryptionKey) Seal(name string, material []byte) string {
	if k == nil {
		return plainMark + base64.StdEncoding.EncodeToString(material)
	}
	return sealedMark + base64.StdEncoding.EncodeToString(k.aead.Seal(nil, nil, material, []byte(name)))
}

// Open returns the material that Seal sealed under this name, or ErrKey. With a key encryption key it rejects unencrypted
// material, which an attacker with write access to the store could have planted.
func (k *KeyEncryptionKey) Open(name, stored string) ([]byte, error) {
	plain, isPlain := strings.CutPrefix(stored, plainMark)
	sealed, isSealed := strings.CutPrefix(stored, sealedMark)
	switch {
	case isPlain && k == nil:
		return decodeStored(plain)
	case isPlain:
		return nil, fmt.Errorf("%w: %s is stored unencrypted, but a key encryption key is set", ErrKey, name)
	case !isSealed:
		return nil, fmt.Errorf("%w: %s is stored in an unknown format", ErrKey, name)
	case k == nil:
		return nil, fmt.Errorf("%w: %s is stored encrypted: set the key encryption key", ErrKey, name)
	}
	raw, err := decodeStored(sealed)
	if err != nil {
		return nil, err
	}
	material, err := k.aead.Open(nil, nil, raw, []byte(name))
	if err != nil {
		return nil, fmt.Errorf("%w: %s cannot be decrypted with this key encryption key", ErrKey, name)
	}
	return material, nil
}

// String shows nothing of the key.
func (k *KeyEncryptionKey) String() string { return "key encryption key" }

func decodeStored(text string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: not base64", ErrKey)
	}
	return raw, nil
}
