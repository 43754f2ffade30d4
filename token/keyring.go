package token

import (
	"encoding/json"
	"fmt"
)

// Keyring holds the keys of one trust domain: it signs and verifies access tokens and derives refresh tokens. It does
// not change once made, and is safe for concurrent use.
type Keyring struct {
	issuer  string
	signing []*SigningKey
	headers map[string]*SigningKey // by the exact header that the key writes
	refresh []*RefreshKey
	jwks    []byte
}

// NewKeyring returns a keyring that signs with the first signing key, derives with the first refresh key and accepts
// what any of them made. Issuer is the iss claim. It returns ErrKey without at least one key of each kind, and when
// the same key is given twice.
func NewKeyring(issuer string, signing []*SigningKey, refresh []*RefreshKey) (*Keyring, error) {
	if len(signing) == 0 || len(refresh) == 0 {
		return nil, fmt.Errorf("%w: a keyring needs a signing key and a token key", ErrKey)
	}
	ring := &Keyring{issuer: issuer, signing: signing, headers: map[string]*SigningKey{}, refresh: refresh}
	set := struct {
		Keys []jwk `json:"keys"`
	}{}
	for _, key := range signing {
		if ring.headers[key.header] != nil {
			return nil, fmt.Errorf("%w: signing key %s is given twice", ErrKey, key.id)
		}
		ring.headers[key.header] = key
		set.Keys = append(set.Keys, key.public)
	}
	for i, key := range refresh {
		if ring.refreshKey(key.id) != refresh[i] {
			return nil, fmt.Errorf("%w: a token key is given twice", ErrKey)
		}
	}
	var err error
	ring.jwks, err = json.Marshal(set)
	return ring, err
}

// JWKS returns the public signing keys as a JSON Web Key Set (RFC 7517 §5), the signing one first.
func (k *Keyring) JWKS() []byte { return k.jwks }

// Issuer returns the iss claim of the tokens it signs.
func (k *Keyring) Issuer() string { return k.issuer }
