package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxKeys is how many keys a set may have that is kept here.
	MaxKeys = 8
	// MaxJWKSSize is the maximum size of such a set in bytes.
	MaxJWKSSize = 16 << 10

	maxRSABits   = 8192
	rsaExponent  = 65537
	maxKeyIDSize = 255 // bytes

	useSignatures = "sig"
	useSPIFFE     = "jwt-svid"
)

// jwk is a public key as RFC 7517 writes it, with RFC 8037 for Ed25519.
type jwk struct {
	Kty string `json:"kty"`
	Use string `json:"use,omitempty"`
	Alg string `json:"alg,omitempty"`
	Kid string `json:"kid,omitempty"`
	Crv string `json:"crv,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
}

// thumbprint returns the base64url of the SHA-256 of thumbprintInput.
func (k jwk) thumbprint() string {
	digest := sha256.Sum256([]byte(k.thumbprintInput()))
	return encode(digest[:])
}

// thumbprintInput returns the required members, in lexicographic order, without white space (RFC 7638 §3, RFC 8037 §2). None
// of them needs escaping.
func (k jwk) thumbprintInput() string {
	switch k.Kty {
	case "OKP":
		return `{"crv":"` + k.Crv + `","kty":"OKP","x":"` + k.X + `"}`
	case "EC":
		return `{"crv":"` + k.Crv + `","kty":"EC","x":"` + k.X + `","y":"` + k.Y + `"}`
	default:
		return `{"e":"` + k.E + `","kty":"RSA","n":"` + k.N + `"}`
	}
}

// PublicKey is a key with which another party signs: RSA of 2048 to 8192 bits, P-256, P-384 or Ed25519.
type PublicKey struct {
	public crypto.PublicKey
	text   jwk // canonical, so that the same key always has the same members
}

// ID returns the kid, "" for none.
func (k PublicKey) ID() string { return k.text.Kid }

// Thumbprint returns the SHA-256 thumbprint of RFC 7638, in base64url.
func (k PublicKey) Thumbprint() string { return k.text.thumbprint() }

// JWKS is a set of public keys, at least one.
type JWKS []PublicKey

// Text returns the set as a JSON Web Key Set (RFC 7517 §5) with the members that ParseJWKS understands. ParseJWKS reads it
// back as the same set.
func (s JWKS) Text() string {
	set := struct {
		Keys []jwk `json:"keys"`
	}{make([]jwk, len(s))}
	for i, key := range s {
		set.Keys[i] = key.text
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err) // a struct of valid strings
	}
	return string(text)
}

// KeyError is the refusal of one key of a set. It never quotes the key.
type KeyError struct {
	Index  int
	Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("keys[%d]: %s", e.Index, e.Reason) }

// Unwrap makes it an ErrKey.
func (e *KeyError) Unwrap() error { return ErrKey }

type setText struct {
	Keys []jsontext.Value `json:"keys"`
}

// ParseJWKS reads a set of 1 to MaxKeys public keys (RFC 7517 §5) of at most MaxJWKSSize bytes. Unknown members are ignored.
// It refuses the whole set, with a *KeyError, for a key that is private, symmetric, malformed, weak or not for signatures,
// and for two keys without different kids; with ErrKey for anything that is not such a set.
func ParseJWKS(raw []byte) (JWKS, error) {
	var set setText
	if len(raw) > MaxJWKSSize {
		return nil, fmt.Errorf("%w: must have at most %d bytes", ErrKey, MaxJWKSSize)
	}
	if json.Unmarshal(raw, &set) != nil || len(set.Keys) == 0 || len(set.Keys) > MaxKeys {
		return nil, fmt.Errorf("%w: must be an object with keys, an array of 1 to %d", ErrKey, MaxKeys)
	}
	keys := make(JWKS, 0, len(set.Keys))
	for i, text := range set.Keys {
		key, err := ParseJWK(text)
		if err == nil && len(set.Keys) > 1 {
			err = keys.distinct(key)
		}
		if err != nil {
			return nil, &KeyError{i, reason(err)}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// distinct refuses a further key that a kid does not tell from those before it (RFC 7517 §4.5).
func (s JWKS) distinct(key PublicKey) error {
	switch {
	case key.ID() == "":
		return errors.New("needs a kid, because there are several keys")
	case slices.ContainsFunc(s, func(k PublicKey) bool { return k.ID() == key.ID() }):
		return errors.New("has the kid of another key")
	}
	return nil
}

// ReadJWKS reads a set that another party publishes. It skips what ParseJWKS would refuse in a key, as RFC 7517 §5 says,
// and returns the first of the others, at most limit. The use jwt-svid, of the keys in a bundle of SPIFFE, is one for signatures
// too. It returns ErrKey when no key is left.
func ReadJWKS(raw []byte, limit int) (JWKS, error) {
	var set setText
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("%w: not a JSON Web Key Set", ErrKey)
	}
	var keys JWKS
	for _, text := range set.Keys {
		if key, err := parseJWK(text, useSignatures, useSPIFFE); err == nil && len(keys) < limit {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: the set has no usable key", ErrKey)
	}
	return keys, nil
}

// keyText has the members of RFC 7517 and RFC 7518 that matter here. The private ones exist only to be refused.
type keyText struct {
	jwk
	Operations []string `json:"key_ops"`

	D   jsontext.Value `json:"d"`
	P   jsontext.Value `json:"p"`
	Q   jsontext.Value `json:"q"`
	DP  jsontext.Value `json:"dp"`
	DQ  jsontext.Value `json:"dq"`
	QI  jsontext.Value `json:"qi"`
	Oth jsontext.Value `json:"oth"`
	K   jsontext.Value `json:"k"`
}

func (t *keyText) isPrivate() bool {
	return slices.ContainsFunc([]jsontext.Value{t.D, t.P, t.Q, t.DP, t.DQ, t.QI, t.Oth, t.K},
		func(member jsontext.Value) bool { return member != nil })
}

// ParseJWK reads one public key (RFC 7517 §4). It ignores unknown members, and refuses with an error of one short sentence
// that wraps ErrKey and never quotes the key.
func ParseJWK(raw []byte) (PublicKey, error) { return parseJWK(raw, useSignatures) }

func parseJWK(raw []byte, uses ...string) (PublicKey, error) {
	var text keyText
	if err := json.Unmarshal(raw, &text); err != nil || jsontext.Value(raw).Kind() != '{' {
		return PublicKey{}, fmt.Errorf("%w: %s", ErrKey, "must be a JSON Web Key")
	}
	key, err := text.parse(uses)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%w: %s", ErrKey, err)
	}
	return key, nil
}

// reason returns what is wrong with a key without the words that every ErrKey begins with.
func reason(err error) string { return strings.TrimPrefix(err.Error(), ErrKey.Error()+": ") }

func (t *keyText) parse(uses []string) (PublicKey, error) {
	switch {
	case t.isPrivate():
		return PublicKey{}, errors.New("must be a public key without private members")
	case t.Use != "" && !slices.Contains(uses, t.Use), t.Operations != nil && !slices.Contains(t.Operations, "verify"):
		return PublicKey{}, errors.New("must be a key for signatures")
	case len(t.Kid) > maxKeyIDSize:
		return PublicKey{}, fmt.Errorf("must have a kid of at most %d bytes", maxKeyIDSize)
	}
	public, canonical, err := t.public()
	if err != nil {
		return PublicKey{}, err
	}
	canonical.Use, canonical.Alg, canonical.Kid = t.Use, t.Alg, t.Kid
	key := PublicKey{public, canonical}
	if t.Alg != "" && key.method(t.Alg) == nil {
		return PublicKey{}, errors.New("has an alg that is unknown or not for such a key")
	}
	return key, nil
}

// public returns the key and its required members in their only spelling.
func (t *keyText) public() (crypto.PublicKey, jwk, error) {
	switch {
	case t.Kty == "RSA":
		return t.rsa()
	case t.Kty == "EC" && t.Crv == "P-256":
		return t.ecdsa(elliptic.P256())
	case t.Kty == "EC" && t.Crv == "P-384":
		return t.ecdsa(elliptic.P384())
	case t.Kty == "OKP" && t.Crv == "Ed25519":
		return t.ed25519()
	}
	return nil, jwk{}, errors.New("must be RSA, P-256, P-384 or Ed25519")
}

func (t *keyText) rsa() (crypto.PublicKey, jwk, error) {
	n, badN := decode(t.N)
	e, badE := decode(t.E)
	if badN != nil || badE != nil {
		return nil, jwk{}, errors.New("must have n and e in base64url")
	}
	modulus := new(big.Int).SetBytes(n)
	switch bits := modulus.BitLen(); {
	case bits < minRSABits || bits > maxRSABits:
		return nil, jwk{}, fmt.Errorf("must have %d to %d bits", minRSABits, maxRSABits)
	case modulus.Bit(0) == 0:
		return nil, jwk{}, errors.New("must have an odd modulus")
	case new(big.Int).SetBytes(e).Cmp(big.NewInt(rsaExponent)) != 0:
		return nil, jwk{}, fmt.Errorf("must have the exponent %d", rsaExponent)
	}
	public := &rsa.PublicKey{N: modulus, E: rsaExponent}
	return public, jwk{Kty: "RSA", N: encode(modulus.Bytes()), E: encode(exponent(rsaExponent))}, nil
}

// ecdsa wants coordinates of the curve's full size (RFC 7518 §6.2.1.2) and a point on the curve.
func (t *keyText) ecdsa(curve elliptic.Curve) (crypto.PublicKey, jwk, error) {
	size := (curve.Params().BitSize + 7) / 8
	x, badX := decode(t.X)
	y, badY := decode(t.Y)
	if badX != nil || badY != nil || len(x) != size || len(y) != size {
		return nil, jwk{}, fmt.Errorf("must have x and y of %d bytes in base64url", size)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y)) // SEC 1 §2.3.3
	if err != nil {
		return nil, jwk{}, errors.New("must be a point on its curve")
	}
	return public, jwk{Kty: "EC", Crv: t.Crv, X: t.X, Y: t.Y}, nil
}

func (t *keyText) ed25519() (crypto.PublicKey, jwk, error) {
	x, err := decode(t.X)
	if err != nil || len(x) != ed25519.PublicKeySize {
		return nil, jwk{}, fmt.Errorf("must have an x of %d bytes in base64url", ed25519.PublicKeySize)
	}
	if hasSmallOrder(x) {
		return nil, jwk{}, errors.New("is a weak key")
	}
	return ed25519.PublicKey(x), jwk{Kty: "OKP", Crv: "Ed25519", X: t.X}, nil
}

// decode reads base64url in its only spelling: no padding, no line breaks, no stray bits. The decoder skips line breaks, and
// refuses the rest itself.
func decode(text string) ([]byte, error) {
	if strings.IndexByte(text, '\n') >= 0 || strings.IndexByte(text, '\r') >= 0 {
		return nil, ErrMalformed
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}
