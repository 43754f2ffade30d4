package token_test

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	"remit/internal/token"
)

// RFC 7518 §6.2.1.2: a coordinate that begins with a zero byte keeps it, or the key set names no point on the curve.
func TestCoordinatesKeepTheirLeadingZeros(t *testing.T) {
	t.Parallel()
	var zeroX, zeroY bool
	for scalar := byte(1); !zeroX || !zeroY; scalar++ {
		for second := range 256 {
			raw := make([]byte, 32)
			raw[30], raw[31] = byte(second), scalar
			private := must(ecdsa.ParseRawPrivateKey(elliptic.P256(), raw))(t)
			point := must(private.PublicKey.Bytes())(t)
			if point[1] != 0 && point[33] != 0 {
				continue
			}
			zeroX, zeroY = zeroX || point[1] == 0, zeroY || point[33] == 0
			requireJWKS(t, newSigner("short coordinate", "ES256", private, nil))
		}
	}
}

func TestGeneratedKeysDiffer(t *testing.T) {
	t.Parallel()
	signing, refresh := map[any]bool{}, map[string]bool{}
	for range 50 {
		key := must(token.ParseSigningKey(must(token.GenerateSigningKey(token.Ed25519))(t)))(t)
		ring := must(token.NewKeyring(issuer, []*token.SigningKey{key}, []*token.RefreshKey{must(token.ParseRefreshKey(token.GenerateRefreshKey()))(t)}))(t)
		public := readJWKS(t, ring)[0]
		if public["alg"] != "EdDSA" {
			t.Errorf("generated a key for %s", public["alg"])
		}
		signing[public["kid"]], refresh[ring.FormatRefresh(goldenFacts)] = true, true
	}
	if len(signing) != 50 || len(refresh) != 50 {
		t.Errorf("of 50 fresh keys %d have another name, and %d derive other tokens", len(signing), len(refresh))
	}
}

func TestParseSigningKeySkipsTextAroundTheKey(t *testing.T) {
	t.Parallel()
	good := string(pkcs8(rfc8037().private))
	for _, text := range []string{
		good, strings.TrimSpace(good), strings.ReplaceAll(good, "\n", "\r\n"), "rotated in May\n" + good, "\n\n" + good + "\n\n",
	} {
		if _, err := token.ParseSigningKey([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseSigningKeyRefusesUnsupportedKeys(t *testing.T) {
	t.Parallel()
	all := signers()
	ed, rsa2048 := all[0].private, all[2].private.(*rsa.PrivateKey)
	good := pkcs8(ed)
	der, _ := pem.Decode(good)
	for name, text := range map[string][]byte{
		"P-384":                      pkcs8(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)),
		"RSA-2040":                   pkcs8(must(rsa.GenerateKey(rand.Reader, 2040))(t)),
		"X25519":                     pkcs8(must(ecdh.X25519().GenerateKey(rand.Reader))(t)),
		"PKCS#1 under PKCS#8's name": block("PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsa2048)),
		"public Ed25519":             block("PUBLIC KEY", pkix(t, ed.Public())),
		"encrypted PKCS#8":           block("ENCRYPTED PRIVATE KEY", der.Bytes),
		"certificate, then the key":  append(block("CERTIFICATE", der.Bytes), good...),
		"no bytes":                   block("PRIVATE KEY", nil),
		"half the bytes":             block("PRIVATE KEY", der.Bytes[:len(der.Bytes)/2]),
		"DER without PEM":            der.Bytes,
		"no end line":                good[:len(good)-30],
		"token key":                  token.GenerateRefreshKey(),
		"garbage":                    []byte("-----BEGIN PRIVATE KEY-----\n!!!!\n-----END PRIVATE KEY-----\n"),
		"nothing":                    nil,
	} {
		key, err := token.ParseSigningKey(text)
		if !errors.Is(err, token.ErrKey) || key != nil {
			t.Errorf("%s: ParseSigningKey returned a key: %t, and %v; want ErrKey", name, key != nil, err)
			continue
		}
		requireSaysNothingOf(t, err, string(text))
		if block, _ := pem.Decode(text); block != nil {
			requireSaysNothingOf(t, err, string(block.Bytes))
			requireSaysNothingOf(t, err, fmt.Sprintf("%x", block.Bytes))
		}
	}
}

// requireSaysNothingOf fails when the error quotes eight characters in a row of a secret. Begin and end lines of PEM
// are none.
func requireSaysNothingOf(tb testing.TB, err error, secret string) {
	tb.Helper()
	for line := range strings.Lines(secret) {
		if strings.HasPrefix(line, "-----") {
			continue
		}
		for i := range max(0, min(len(line), 4096)-7) {
			if strings.Contains(err.Error(), line[i:i+8]) {
				tb.Errorf("%q quotes %q", err, line[i:i+8])
			}
		}
	}
}

func decode(tb testing.TB, text string) []byte {
	tb.Helper()
	return must(base64.RawURLEncoding.Strict().DecodeString(text))(tb)
}

func block(name string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der})
}

func pkix(tb testing.TB, public crypto.PublicKey) []byte {
	tb.Helper()
	return must(x509.MarshalPKIXPublicKey(public))(tb)
}
