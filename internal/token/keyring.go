package token

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-json"
	"github.com/google/uuid"
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

	audiencesFrom time.Time
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

// NamingAudiencesFrom returns a keyring with the same keys that signs tokens in the form of the version before when they are issued
// earlier, for the issuer alone, and neither bound nor delegated: instances of that version refuse the new form.
func (k *Keyring) NamingAudiencesFrom(from time.Time) *Keyring {
	later := *k
	later.audiencesFrom = from
	return &later
}

// inOldForm returns the token without what the version before does not know, if it is to be signed so.
func (k *Keyring) inOldForm(a Access) Access {
	if a.Issued.Before(k.audiencesFrom) && len(a.Audience) == 1 && a.Audience[0] == k.issuer && a.Thumbprint == "" && !a.Delegated() {
		a.Audience, a.Client = nil, uuid.Nil
	}
	return a
}

// Equal reports whether both keyrings have the same issuer and the same keys in the same order, and name audiences from the same
// time on.
func (k *Keyring) Equal(other *Keyring) bool {
	return k.issuer == other.issuer && k.audiencesFrom.Equal(other.audiencesFrom) &&
		slices.EqualFunc(k.signing, other.signing, func(a, b *SigningKey) bool { return a.header == b.header }) &&
		slices.EqualFunc(k.refresh, other.refresh, func(a, b *RefreshKey) bool { return a.secret == b.secret })
}

// Issuer returns the iss claim of the tokens it signs.
func (k *Keyring) Issuer() string { return k.issuer }
