package token

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// SigningKey signs and verifies access tokens. The kind of key determines the algorithm, never the token: EdDSA for Ed25519,
// ES256 for P-256, RS256 for RSA of at least 2048 bits.
type SigningKey struct {
	id      string // kid: RFC 7638 thumbprint
	method  jwt.SigningMethod
	private crypto.Signer
	header  string // base64url of the only header it writes
	public  jwk
}

const minRSABits = 2048

// Algorithm is a JWS algorithm (RFC 7518, RFC 8037) of a signing key.
type Algorithm string

// The algorithms, by their names in a JWT header.
const (
	Ed25519 Algorithm = "EdDSA"
	ES256   Algorithm = "ES256"
	RS256   Algorithm = "RS256"
)

// GenerateSigningKey returns a new key as PKCS#8 PEM: Ed25519, P-256 or RSA of 2048 bits.
func GenerateSigningKey(algorithm Algorithm) ([]byte, error) {
	private, err := generate(algorithm)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func generate(algorithm Algorithm) (crypto.Signer, error) {
	switch algorithm {
	case Ed25519:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RS256:
		return rsa.GenerateKey(rand.Reader, minRSABits)
	}
	return nil, fmt.Errorf("%w: unknown algorithm %q", ErrKey, algorithm)
}

// ParseSigningKey reads one private key from PKCS#8 PEM (RFC 5958). It returns ErrKey for anything else, and for keys of an
// unsupported kind or size.
func ParseSigningKey(text []byte) (*SigningKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%w: a signing key is one PKCS#8 PEM block named PRIVATE KEY", ErrKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: not PKCS#8", ErrKey) // the cause could quote the key
	}
	key, err := describe(parsed)
	if err != nil {
		return nil, err
	}
	key.id = key.public.thumbprint()
	key.public.Use, key.public.Alg, key.public.Kid = "sig", key.method.Alg(), key.id
	key.header, err = encodeHeader(key.method.Alg(), accessTokenType, key.id)
	return key, err
}

// signatureSize returns how many bytes its signatures have.
func (key *SigningKey) signatureSize() int {
	if private, isRSA := key.private.(*rsa.PrivateKey); isRSA {
		return private.Size()
	}
	return 64 // Ed25519 and P-256
}

// String returns the kid, so that a key printed by mistake shows nothing else.
func (key *SigningKey) String() string { return key.id }

// describe returns the key with its algorithm and the required members of its public form.
func describe(parsed any) (*SigningKey, error) {
	switch private := parsed.(type) {
	case ed25519.PrivateKey:
		x := encode(private.Public().(ed25519.PublicKey))
		return &SigningKey{method: jwt.SigningMethodEdDSA, private: private, public: jwk{Kty: "OKP", Crv: "Ed25519", X: x}}, nil
	case *ecdsa.PrivateKey:
		if private.Curve != elliptic.P256() {
			return nil, fmt.Errorf("%w: of the elliptic curves only P-256 is signed with", ErrKey)
		}
		point, err := private.PublicKey.Bytes() // 4, x, y: SEC 1 §2.3.3
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrKey, err)
		}
		x, y := encode(point[1:33]), encode(point[33:])
		return &SigningKey{method: jwt.SigningMethodES256, private: private, public: jwk{Kty: "EC", Crv: "P-256", X: x, Y: y}}, nil
	case *rsa.PrivateKey:
		if private.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("%w: RSA needs at least %d bits", ErrKey, minRSABits)
		}
		n, e := encode(private.N.Bytes()), encode(exponent(private.E))
		return &SigningKey{method: jwt.SigningMethodRS256, private: private, public: jwk{Kty: "RSA", N: n, E: e}}, nil
	}
	return nil, fmt.Errorf("%w: sign with Ed25519, P-256 or RSA", ErrKey)
}

func exponent(e int) []byte {
	return bytes.TrimLeft(binary.BigEndian.AppendUint64(nil, uint64(e)), "\x00")
}

func encodeHeader(algorithm, typ, id string) (string, error) {
	header, err := json.Marshal(struct {
		Alg string `json:"alg"`
		Typ string `json:"typ"`
		Kid string `json:"kid"`
	}{algorithm, typ, id})
	return encode(header), err
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
