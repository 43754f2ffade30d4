package keys

import (
	"remit/internal/token"
	"remit/redisstore"
)

// newKey is a key that was just generated: its name and its text.
type newKey struct {
	id       string
	material []byte
}

func newSigningKey(algorithm token.Algorithm) func() (newKey, error) {
	return func() (newKey, error) {
		material, err := token.GenerateSigningKey(algorithm)
		if err != nil {
			return newKey{}, err
		}
		key, err := token.ParseSigningKey(material)
		return newKey{key.String(), material}, err
	}
}

func newRefreshKey() (newKey, error) {
	material := token.GenerateRefreshKey()
	key, err := token.ParseRefreshKey(material)
	return newKey{key.String(), material}, err
}

// sealed returns the key as Redis stores it: encrypted unless kek is nil.
func (k newKey) sealed(kek *token.KeyEncryptionKey, kind redisstore.KeyKind) string {
	return kek.Seal(sealName(kind, k.id), k.material)
}

// sealName is what the encryption of a stored key is bound to, and the key's name in messages.
func sealName(kind redisstore.KeyKind, id string) string { return string(kind) + " key " + id }
