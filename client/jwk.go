package client

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// jwk is a JSON Web Key (RFC 7517, RFC 7518 §6, RFC 8037). Members that are none of these are ignored.
type jwk struct {
	Type      string    `json:"kty"`
	Curve     string    `json:"crv,omitzero"`
	X         string    `json:"x,omitzero"`
	Y         string    `json:"y,omitzero"`
	N         string    `json:"n,omitzero"`
	E         string    `json:"e,omitzero"`
	ID        string    `json:"kid,omitzero"`
	Algorithm Algorithm `json:"alg,omitzero"`

	D string `json:"d,omitzero"` // from here on private
	P string `json:"p,omitzero"`
	Q string `json:"q,omitzero"`

	DP string `json:"dp,omitzero"`
	DQ string `json:"dq,omitzero"`
	QI string `json:"qi,omitzero"`
}

// public returns the key without its private members.
func (k jwk) public() jwk {
	return jwk{Type: k.Type, Curve: k.Curve, X: k.X, Y: k.Y, N: k.N, E: k.E, ID: k.ID, Algorithm: k.Algorithm}
}

// bare returns what identifies the key: its required public members (RFC 7638 §3.2).
func (k jwk) bare() jwk { return jwk{Type: k.Type, Curve: k.Curve, X: k.X, Y: k.Y, N: k.N, E: k.E} }

// thumbprint returns the key's thumbprint by SHA-256 (RFC 7638). A map is marshaled in the order of its names, as the RFC has it.
func (k jwk) thumbprint() string {
	required := map[string]string{"kty": k.Type}
	for name, value := range map[string]string{"crv": k.Curve, "x": k.X, "y": k.Y, "n": k.N, "e": k.E} {
		if value != "" {
			required[name] = value
		}
	}
	text, _ := json.Marshal(required) // strings of base64url and names of curves
	sum := sha256.Sum256(text)
	return encodeSegment(sum[:])
}

// jwkOf returns the public key as a JWK with its usual algorithm.
func jwkOf(public crypto.PublicKey) (jwk, error) {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		curve, algorithm := key.Curve.Params().Name, curveAlgorithms[key.Curve.Params().Name]
		if algorithm == "" {
			return jwk{}, fmt.Errorf("the curve %s is not supported: use P-256 or P-384", curve)
		}
		point, err := key.Bytes()
		if err != nil {
			return jwk{}, err
		}
		half := len(point) / 2 // behind the first byte, which says that the point is not compressed
		return jwk{Type: "EC", Curve: curve, X: encodeSegment(point[1 : 1+half]), Y: encodeSegment(point[1+half:]), Algorithm: algorithm}, nil
	case ed25519.PublicKey:
		return jwk{Type: "OKP", Curve: "Ed25519", X: encodeSegment(key), Algorithm: EdDSA}, nil
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < leastRSA {
			return jwk{}, fmt.Errorf("an RSA key of %d bits is too short: use %d or more", bits, leastRSA)
		}
		return jwk{Type: "RSA", N: encodeSegment(key.N.Bytes()), E: encodeSegment(big.NewInt(int64(key.E)).Bytes()), Algorithm: RS256}, nil
	}
	return jwk{}, errors.New("the key is none of RSA, EC and Ed25519")
}

var (
	curveAlgorithms = map[string]Algorithm{"P-256": ES256, "P-384": ES384}
	curves          = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384()}
)

// publicKey returns the public key that the JWK describes.
func (k jwk) publicKey() (crypto.PublicKey, error) {
	switch {
	case k.Type == "EC" && curves[k.Curve] != nil:
		x, y, err := decodeTwo(k.X, k.Y)
		if err != nil {
			return nil, err
		}
		return ecdsa.ParseUncompressedPublicKey(curves[k.Curve], append(append([]byte{4}, x...), y...))
	case k.Type == "OKP" && k.Curve == "Ed25519":
		x, err := decodeSegment(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, errors.New("x is no Ed25519 key")
		}
		return ed25519.PublicKey(x), nil
	case k.Type == "RSA":
		n, e, err := decodeTwo(k.N, k.E)
		if err != nil || len(e) == 0 || len(e) > 4 {
			return nil, errors.New("n or e is no RSA key")
		}
		return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}, nil
	}
	return nil, fmt.Errorf("a key of the type %q and curve %q is not supported: use RSA, EC (P-256, P-384) or OKP (Ed25519)", k.Type, k.Curve)
}

// privateKey returns the private key that the JWK describes.
func (k jwk) privateKey() (crypto.Signer, error) {
	if k.D == "" {
		return nil, errors.New("it is a public key: a private one is needed")
	}
	public, err := k.publicKey()
	if err != nil {
		return nil, err
	}
	d, err := decodeSegment(k.D)
	if err != nil {
		return nil, err
	}
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		private, err := ecdsa.ParseRawPrivateKey(public.Curve, d)
		return matching(private, err, public.Equal)
	case ed25519.PublicKey:
		if len(d) != ed25519.SeedSize {
			return nil, errors.New("d is no Ed25519 key")
		}
		return matching(ed25519.NewKeyFromSeed(d), nil, public.Equal)
	default:
		return k.privateRSA(public.(*rsa.PublicKey), d)
	}
}

func (k jwk) privateRSA(public *rsa.PublicKey, d []byte) (crypto.Signer, error) {
	p, q, err := decodeTwo(k.P, k.Q)
	if err != nil || len(p) == 0 || len(q) == 0 {
		return nil, errors.New("p or q of the RSA key is missing")
	}
	private := &rsa.PrivateKey{
		PublicKey: *public, D: new(big.Int).SetBytes(d),
		Primes: []*big.Int{new(big.Int).SetBytes(p), new(big.Int).SetBytes(q)},
	}
	if err := private.Validate(); err != nil {
		return nil, err
	}
	private.Precompute()
	return private, nil
}

// matching returns the private key if it belongs to the public one.
func matching(private crypto.Signer, err error, belongs func(crypto.PublicKey) bool) (crypto.Signer, error) {
	if err != nil {
		return nil, err
	}
	if !belongs(private.Public()) {
		return nil, errors.New("its private and public parts do not belong together")
	}
	return private, nil
}

func encodeSegment(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// decodeSegment returns the bytes of base64url without padding. Its error does not quote the text, which may be private.
func decodeSegment(text string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("a member is not base64url")
	}
	return raw, nil
}

func decodeTwo(first, second string) ([]byte, []byte, error) {
	a, err := decodeSegment(first)
	if err != nil {
		return nil, nil, err
	}
	b, err := decodeSegment(second)
	return a, b, err
}
