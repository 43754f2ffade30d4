package client

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Algorithm is a way to sign (RFC 7518 §3.1, RFC 8037 §3.1).
type Algorithm string

// The algorithms of keys.
const (
	ES256 Algorithm = "ES256" // EC keys on P-256
	ES384 Algorithm = "ES384" // EC keys on P-384
	EdDSA Algorithm = "EdDSA" // Ed25519 keys
	RS256 Algorithm = "RS256" // RSA keys
	PS256 Algorithm = "PS256" // RSA keys whose JWK names it
)

const (
	leastRSA   = 2048     // bits
	maxKeyFile = 64 << 10 // bytes
)

// Key is a private key, which signs client assertions (AgentOptions.Key) and proofs (AgentOptions.DPoP). Its private part is
// never printed; Text returns it.
type Key struct {
	algorithm Algorithm
	public    jwk // with the id, if it has one
	sign      func(message []byte) ([]byte, error)
	text      hidden // the private JWK
}

// GenerateKey returns a new key, for ES256 or EdDSA. Its id is its thumbprint.
func GenerateKey(a Algorithm) (*Key, error) {
	var private crypto.Signer
	var err error
	switch a {
	case ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		return nil, fmt.Errorf("remit: no key can be made for %q: use client.ES256 or client.EdDSA", string(a))
	}
	if err != nil {
		return nil, err
	}
	public, err := jwkOf(private.Public())
	if err != nil {
		return nil, err
	}
	public.ID = public.thumbprint()
	return newKey(private, public)
}

// ParseKey reads a private key: a JWK (RFC 7517), or PEM (PKCS #8, SEC 1, PKCS #1) without a password. Its error is
// *UnusableCredential.
func ParseKey(text string) (*Key, error) {
	key, err := parsePrivate(text)
	if err != nil {
		return nil, &UnusableCredential{"key", err}
	}
	return key, nil
}

// ReadKey is ParseKey for the text of a file.
func ReadKey(file string) (*Key, error) {
	text, err := readCredential(file, maxKeyFile)
	if err != nil {
		return nil, &UnusableCredential{file, err}
	}
	key, err := parsePrivate(text)
	if err != nil {
		return nil, &UnusableCredential{file, err}
	}
	return key, nil
}

// Algorithm returns the algorithm that the key signs by.
func (k *Key) Algorithm() Algorithm { return k.algorithm }

// Thumbprint returns the key's thumbprint (RFC 7638), which tokens that are bound to it name as cnf.jkt.
func (k *Key) Thumbprint() string { return k.public.thumbprint() }

// JWKS returns the key's public part as a JWK Set, for AgentParams.JWKS.
func (k *Key) JWKS() json.RawMessage { return setOf(k.public) }

// Text returns the whole key as a JWK, for storing it. ParseKey reads it.
func (k *Key) Text() Credential { return Credential(k.text.reveal()) }

// String names the key by its algorithm and thumbprint.
func (k *Key) String() string { return string(k.algorithm) + " " + k.Thumbprint() }

// PublicJWKS returns the public part of keys as a JWK Set, for AgentParams.JWKS. It reads a JWK, a JWK Set, or PEM, private or
// public. A key without an id gets its thumbprint.
func PublicJWKS(text string) (json.RawMessage, error) {
	keys, err := parsePublic(text)
	if err != nil {
		return nil, &UnusableCredential{"key", err}
	}
	return setOf(keys...), nil
}

// setOf returns the public parts of keys as a JWK Set (RFC 7517 §5).
func setOf(keys ...jwk) json.RawMessage {
	public := make([]jwk, len(keys))
	for i, k := range keys {
		public[i] = k.public()
		public[i].ID = cmp.Or(k.ID, k.thumbprint())
	}
	text, _ := json.Marshal(map[string][]jwk{"keys": public}) // strings
	return text
}

func newKey(private crypto.Signer, public jwk) (*Key, error) {
	whole, err := withPrivate(private, public)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	return &Key{public.Algorithm, public, signerFor(private, public.Algorithm), hide(string(text))}, nil
}

// withPrivate adds the private members to the JWK.
func withPrivate(private crypto.Signer, k jwk) (jwk, error) {
	switch key := private.(type) {
	case *ecdsa.PrivateKey:
		d, err := key.Bytes()
		k.D = encodeSegment(d)
		return k, err
	case ed25519.PrivateKey:
		k.D = encodeSegment(key.Seed())
	case *rsa.PrivateKey:
		if len(key.Primes) != 2 {
			return k, errors.New("an RSA key of more than two primes is not supported")
		}
		key.Precompute()
		k.D, k.P, k.Q = encodeSegment(key.D.Bytes()), encodeSegment(key.Primes[0].Bytes()), encodeSegment(key.Primes[1].Bytes())
		k.DP, k.DQ, k.QI = encodeSegment(key.Precomputed.Dp.Bytes()), encodeSegment(key.Precomputed.Dq.Bytes()), encodeSegment(key.Precomputed.Qinv.Bytes())
	}
	return k, nil
}

// parsePrivate reads a private key. Its errors quote nothing of the text.
func parsePrivate(text string) (*Key, error) {
	private, given, err := privateIn(strings.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	public, err := jwkOf(private.Public())
	if err != nil {
		return nil, err
	}
	public.ID = given.ID
	if given.Algorithm == PS256 && public.Type == "RSA" {
		public.Algorithm = PS256
	}
	if given.Algorithm != "" && given.Algorithm != public.Algorithm {
		return nil, fmt.Errorf("its alg %.20q does not fit: %s does", string(given.Algorithm), public.Algorithm)
	}
	return newKey(private, public)
}

// privateIn returns the private key in the text, with its JWK if it is one.
func privateIn(text string) (crypto.Signer, jwk, error) {
	if !strings.HasPrefix(text, "{") {
		private, err := privateInPEM([]byte(text))
		return private, jwk{}, err
	}
	keys, err := keysIn(text)
	if err != nil {
		return nil, jwk{}, err
	}
	if len(keys) != 1 {
		return nil, jwk{}, fmt.Errorf("it is a set of %d keys: one is needed", len(keys))
	}
	private, err := keys[0].privateKey()
	return private, keys[0], err
}

func privateInPEM(text []byte) (crypto.Signer, error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil, errors.New("it is neither a JWK nor PEM with a private key")
		}
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("it is encrypted: decrypt it with openssl pkey")
		default: // such as the parameters that openssl writes before an EC key
			text = rest
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("its %s cannot be read", block.Type)
		}
		private, ok := key.(crypto.Signer)
		if !ok {
			return nil, errors.New("it cannot sign")
		}
		return private, nil
	}
}

// keysIn reads a JWK or a JWK Set.
func keysIn(text string) ([]jwk, error) {
	var read struct {
		Keys *[]jwk `json:"keys"`
		jwk
	}
	if json.Unmarshal([]byte(text), &read) != nil {
		return nil, errors.New("it is no JWK")
	}
	if read.Keys != nil {
		return *read.Keys, nil
	}
	return []jwk{read.jwk}, nil
}

// parsePublic returns the public keys in the text.
func parsePublic(text string) ([]jwk, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return publicInPEM([]byte(text))
	}
	keys, err := keysIn(text)
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		public, err := k.publicKey()
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		usual, err := jwkOf(public)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		if keys[i] = k.public(); k.Algorithm == "" {
			keys[i].Algorithm = usual.Algorithm
		}
	}
	return keys, nil
}

// publicInPEM returns the public keys in PEM: those that it has, and those of its private keys.
func publicInPEM(text []byte) ([]jwk, error) {
	var keys []jwk
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var public crypto.PublicKey
		var err error
		switch {
		case block.Type == "PUBLIC KEY":
			public, err = x509.ParsePKIXPublicKey(block.Bytes)
		case block.Type == "RSA PUBLIC KEY":
			public, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			var private crypto.Signer
			if private, err = privateInPEM(pem.EncodeToMemory(block)); err == nil {
				public = private.Public()
			}
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		key, err := jwkOf(public)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if keys == nil {
		return nil, errors.New("it is neither a JWK, nor a JWK Set, nor PEM with a key")
	}
	return keys, nil
}

// readCredential returns the text of a small file.
func readCredential(name string, most int64) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", errors.Unwrap(err) // the caller names the file
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(text)) > most:
		return "", fmt.Errorf("it is longer than %d KiB", most>>10)
	case len(strings.TrimSpace(string(text))) == 0:
		return "", errors.New("it is empty")
	}
	return strings.TrimSpace(string(text)), nil
}
