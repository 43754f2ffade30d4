package token

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/goccy/go-json"
)

const maxIssuer = 100 // bytes: with the longest scopes a token still fits into MaxAccessSize

// Keyring holds the keys of one trust domain: it signs and verifies access tokens and derives refresh tokens. It is immutable
// and safe for concurrent use.
type Keyring struct {
	issuer  string
	signing []*SigningKey
	headers map[string]*SigningKey // by the exact header that the key writes
	refresh []*RefreshKey
	jwks    []byte
}

// NewKeyring returns a keyring that signs with the first signing key, derives with the first refresh key and verifies with
// all of them. Issuer is the iss claim, 1 to 100 bytes of UTF-8. It returns ErrKey for any other issuer, for a kind without
// a key and for duplicate keys.
func NewKeyring(issuer string, signing []*SigningKey, refresh []*RefreshKey) (*Keyring, error) {
	if len(signing) == 0 || len(refresh) == 0 {
		return nil, fmt.Errorf("%w: a keyring needs a signing key and a token key", ErrKey)
	}
	if issuer == "" || len(issuer) > maxIssuer || !utf8.ValidString(issuer) {
		return nil, fmt.Errorf("%w: the issuer must be 1 to %d bytes of UTF-8", ErrKey, maxIssuer)
	}
	ring := &Keyring{issuer: issuer, signing: slices.Clone(signing), headers: map[string]*SigningKey{}}
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
	for _, key := range refresh {
		if ring.refreshKey(key.id) != nil {
			return nil, fmt.Errorf("%w: a token key is given twice", ErrKey)
		}
		ring.refresh = append(ring.refresh, key)
	}
	var err error
	ring.jwks, err = json.Marshal(set)
	return ring, err
}

// JWKS returns the public keys as a JSON Web Key Set (RFC 7517 §5), first the one that signs.
func (k *Keyring) JWKS() []byte { return slices.Clone(k.jwks) }

// SigningAlgorithms returns the algorithms of the published keys, each once, first that of new tokens.
func (k *Keyring) SigningAlgorithms() []string {
	var algorithms []string
	for _, key := range k.signing {
		if algorithm := key.method.Alg(); !slices.Contains(algorithms, algorithm) {
			algorithms = append(algorithms, algorithm)
		}
	}
	return algorithms
}

// Equal reports whether both keyrings have the same issuer and the same keys in the same order.
func (k *Keyring) Equal(other *Keyring) bool {
	return k.issuer == other.issuer &&
		slices.EqualFunc(k.signing, other.signing, func(a, b *SigningKey) bool { return a.header == b.header }) &&
		slices.EqualFunc(k.refresh, other.refresh, func(a, b *RefreshKey) bool { return a.secret == b.secret })
}

// Issuer returns the iss claim of the tokens it signs.
func (k *Keyring) Issuer() string { return k.issuer }
