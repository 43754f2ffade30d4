// Package prover makes DPoP proofs (RFC 9449 §4.2) as a client would, and such that no client should, for tests and benchmarks.
// It shares no code with the service's own reading of proofs. Nothing but tests imports it.
package prover

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// Key is a client's key.
type Key struct {
	Algorithm string
	Private   crypto.Signer
}

// New returns a new key for ES256, ES384, EdDSA, Ed25519, RS256 or PS256. It panics for any other algorithm.
func New(algorithm string) *Key {
	private, err := generate(algorithm)
	if err != nil {
		panic(err)
	}
	return &Key{algorithm, private}
}

func generate(algorithm string) (crypto.Signer, error) {
	switch algorithm {
	case "ES256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "EdDSA", "Ed25519":
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case "RS256", "PS256":
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	panic("prover: no key for " + algorithm)
}

// JWK returns the public key (RFC 7517).
func (k *Key) JWK() map[string]any {
	switch public := k.Private.Public().(type) {
	case ed25519.PublicKey:
		return map[string]any{"kty": "OKP", "crv": "Ed25519", "x": encode(public)}
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		if err != nil {
			panic(err)
		}
		size := len(point) / 2
		return map[string]any{"kty": "EC", "crv": public.Curve.Params().Name, "x": encode(point[1 : 1+size]), "y": encode(point[1+size:])}
	case *rsa.PublicKey:
		return map[string]any{"kty": "RSA", "n": encode(public.N.Bytes()), "e": encode(big.NewInt(int64(public.E)).Bytes())}
	}
	panic("prover: unknown key")
}

// Thumbprint returns cnf.jkt of tokens bound to the key. The members of an encoded map are in lexicographic order, as RFC 7638
// §3 wants them.
func (k *Key) Thumbprint() string {
	digest := sha256.Sum256(mustJSON(k.JWK()))
	return encode(digest[:])
}

// Proof says what a proof is for. The zero Issued is now, the zero ID a new one.
type Proof struct {
	Method, URL string
	Token       string // the access token that comes with it, "" for none
	Nonce       string
	ID          string
	Issued      time.Time
}

// Header returns the header of the key's proofs.
func (k *Key) Header() map[string]any {
	return map[string]any{"typ": "dpop+jwt", "alg": k.Algorithm, "jwk": k.JWK()}
}

// Claims returns the claims of the proof.
func (p Proof) Claims() map[string]any {
	if p.ID == "" {
		p.ID = uuid.NewString()
	}
	if p.Issued.IsZero() {
		p.Issued = time.Now()
	}
	claims := map[string]any{"jti": p.ID, "htm": p.Method, "htu": p.URL, "iat": p.Issued.Unix()}
	if p.Token != "" {
		claims["ath"] = Hash(p.Token)
	}
	if p.Nonce != "" {
		claims["nonce"] = p.Nonce
	}
	return claims
}

// Hash returns ath of an access token.
func Hash(token string) string {
	digest := sha256.Sum256([]byte(token))
	return encode(digest[:])
}

// Prove returns the proof.
func (k *Key) Prove(p Proof) string { return k.Sign(k.Header(), p.Claims()) }

// Sign returns a JWT of any header and claims, which the key signs by its own algorithm whatever the header says.
func (k *Key) Sign(header, claims map[string]any) string {
	return k.SignText(string(mustJSON(header)), string(mustJSON(claims)))
}

// SignText is Sign for texts that no encoder would write.
func (k *Key) SignText(header, claims string) string {
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	signature, err := jwt.GetSigningMethod(strings.Replace(k.Algorithm, "Ed25519", "EdDSA", 1)).Sign(text, k.Private)
	if err != nil {
		panic(err)
	}
	return text + "." + encode(signature)
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func mustJSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
