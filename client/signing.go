package client

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
)

// signerFor returns what signs by the key, in the form of RFC 7518 §3 and RFC 8037 §3.1.
func signerFor(private crypto.Signer, a Algorithm) func([]byte) ([]byte, error) {
	if key, is := private.(*ecdsa.PrivateKey); is {
		return func(message []byte) ([]byte, error) { return signEC(key, message) }
	}
	how := map[Algorithm]crypto.SignerOpts{
		EdDSA: crypto.Hash(0), RS256: crypto.SHA256, PS256: &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256},
	}[a]
	return func(message []byte) ([]byte, error) { return crypto.SignMessage(private, rand.Reader, message, how) }
}

// signEC returns r and s, each as long as the curve's order (RFC 7518 §3.4).
func signEC(key *ecdsa.PrivateKey, message []byte) ([]byte, error) {
	digest := sha256.Sum256(message)
	hash := digest[:]
	if key.Curve.Params().BitSize > 256 {
		longer := sha512.Sum384(message)
		hash = longer[:]
	}
	r, s, err := ecdsa.Sign(rand.Reader, key, hash)
	if err != nil {
		return nil, err
	}
	size := (key.Curve.Params().N.BitLen() + 7) / 8
	signature := make([]byte, 2*size)
	r.FillBytes(signature[:size])
	s.FillBytes(signature[size:])
	return signature, nil
}

// jwt returns a signed JWT (RFC 7519) with the header and claims.
func (k *Key) jwt(header, claims any) (string, error) {
	first, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	second, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encodeSegment(first) + "." + encodeSegment(second)
	signature, err := k.sign([]byte(signed))
	if err != nil {
		return "", err
	}
	return signed + "." + encodeSegment(signature), nil
}
