package token

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"strings"
)

// KeyEncryptionKey seals other keys where they are kept, with AES-256-GCM (NIST SP 800-38D).
type KeyEncryptionKey struct{ aead cipher.AEAD }

const (
	sealedMark = "sealed:"
	plainMark  = "plain:"
)

// ParseKeyEncryptionKey reads a key from the base64 of 32 bytes; white space around it does not count. It returns
// ErrKey for anything else.
func ParseKeyEncryptionKey(text []byte) (*KeyEncryptionKey, error) {
	secret, err := parseKeyFile(text)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrKey, err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &KeyEncryptionKey{aead}, err
}

// Seal returns the material of a key as it may be kept: encrypted and bound to the key's name, so that one record
// cannot stand in for another. Without a key encryption key (nil) the material is only marked as plain.
func (k *KeyEncryptionKey) Seal(name string, material []byte) string {
	if k == nil {
		return plainMark + base64.StdEncoding.EncodeToString(material)
	}
	return sealedMark + base64.StdEncoding.EncodeToString(k.aead.Seal(nil, nil, material, []byte(name)))
}

// Open returns the material that Seal kept under this name. With a key encryption key plain material is refused: it
// could have been planted by whoever can write the store. It returns ErrKey when it cannot be opened.
func (k *KeyEncryptionKey) Open(name, kept string) ([]byte, error) {
	plain, isPlain := strings.CutPrefix(kept, plainMark)
	sealed, isSealed := strings.CutPrefix(kept, sealedMark)
	switch {
	case isPlain && k == nil:
		return decodeKept(plain)
	case isPlain:
		return nil, fmt.Errorf("%w: %s is kept unencrypted, though a key encryption key is given", ErrKey, name)
	case !isSealed:
		return nil, fmt.Errorf("%w: %s is kept in an unknown form", ErrKey, name)
	case k == nil:
		return nil, fmt.Errorf("%w: %s is kept encrypted; give the key encryption key", ErrKey, name)
	}
	raw, err := decodeKept(sealed)
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

func decodeKept(text string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: not base64", ErrKey)
	}
	return raw, nil
}
