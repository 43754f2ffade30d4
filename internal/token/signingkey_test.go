package token_test

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"remit/internal/token"
)

func TestEachKindOfKeySignsAndVerifies(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		ring := newKeyring(t, s)
		a := bearer()
		text := signAccess(t, ring, a)
		requireSays(t, ring, text, noon, a)
		if header, _, _ := strings.Cut(text, "."); header != s.header() {
			t.Errorf("%s: header %s; want %s", s.name, header, s.header())
		}
	}
}

func TestKeyIsNamedByItsThumbprint(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		if kid := readJWKS(t, newKeyring(t, s))[0]["kid"]; kid != s.kid() {
			t.Errorf("%s: kid %s; want %s", s.name, kid, s.kid())
		}
	}
	key := readJWKS(t, newKeyring(t, rfc8037()))[0] // RFC 8037 Appendix A.1 to A.3
	if key["x"] != "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" ||
		key["kid"] != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("RFC 8037's key is %v", key)
	}
}

func TestRSAThumbprintIsThatOfRFC7638(t *testing.T) {
	t.Parallel()
	const n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3" +
		"oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6q" +
		"MQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
	public := rsa.PublicKey{N: new(big.Int).SetBytes(decode(t, n)), E: 65537} // §3.1
	text, err := token.ThumbprintInput(&rsa.PrivateKey{PublicKey: public})
	if want := `{"e":"AQAB","kty":"RSA","n":"` + n + `"}`; err != nil || text != want {
		t.Errorf("ThumbprintInput = %s, %v; want %s", text, err, want)
	}
	sum := sha256.Sum256([]byte(text))
	if got := encode(string(sum[:])); got != "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" || got != thumbprint(&public) {
		t.Errorf("thumbprint %s", got)
	}
}

// RFC 7518 §6.2.1.2: a coordinate that begins with a zero byte keeps it, or the key set names no point on the curve.
func TestCoordinatesKeepTheirLeadingZeros(t *testing.T) {
	t.Parallel()
	var zeroX, zeroY bool
	for scalar := byte(1); !zeroX || !zeroY; scalar++ {
		for second := range 256 {
			raw := make([]byte, 32)
			raw[30], raw[31] = byte(second), scalar
			private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
			if err != nil {
				t.Fatal(err)
			}
			point, err := private.PublicKey.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			if point[1] != 0 && point[33] != 0 {
				continue
			}
			zeroX, zeroY = zeroX || point[1] == 0, zeroY || point[33] == 0
			s := newSigner("short coordinate", "ES256", private, nil)
			ring := newKeyring(t, s)
			if public := readPublic(t, readJWKS(t, ring)[0]); !private.PublicKey.Equal(public) {
				t.Errorf("scalar %x: %s is another key", raw, ring.JWKS())
			}
		}
	}
}

func TestGeneratedSigningKeysDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 50 {
		text, err := token.GenerateSigningKey(token.Ed25519)
		if err != nil {
			t.Fatal(err)
		}
		key, err := token.ParseSigningKey(text)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := token.NewKeyring(issuer, []*token.SigningKey{key}, []*token.RefreshKey{refreshKey(t, 0)})
		if err != nil {
			t.Fatal(err)
		}
		public := readJWKS(t, ring)[0]
		if public["alg"] != "EdDSA" {
			t.Errorf("generated a key for %s", public["alg"])
		}
		seen[public["kid"]] = true
	}
	if len(seen) != 50 {
		t.Errorf("50 fresh keys have %d names", len(seen))
	}
}

func TestParseSigningKeySkipsTextAroundTheKey(t *testing.T) {
	t.Parallel()
	good := string(pkcs8(rfc8037().private))
	for name, text := range map[string]string{
		"bare":            good,
		"no line break":   strings.TrimSpace(good),
		"DOS line breaks": strings.ReplaceAll(good, "\n", "\r\n"),
		"comment before":  "rotated in May\n" + good,
		"blank lines":     "\n\n" + good + "\n\n",
	} {
		if _, err := token.ParseSigningKey([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseSigningKeyRefusesUnsupportedKeys(t *testing.T) {
	t.Parallel()
	all := signers()
	ed, p256, rsa2048 := all[0].private, all[1].private.(*ecdsa.PrivateKey), all[2].private.(*rsa.PrivateKey)
	good := pkcs8(ed)
	der, _ := pem.Decode(good)
	for name, text := range map[string][]byte{
		"P-224":                       pkcs8(newECDSA(t, elliptic.P224())),
		"P-384":                       pkcs8(newECDSA(t, elliptic.P384())),
		"P-521":                       pkcs8(newECDSA(t, elliptic.P521())),
		"RSA-1024":                    pkcs8(newRSA(t, 1024)),
		"RSA-2040":                    pkcs8(newRSA(t, 2040)),
		"X25519":                      pkcs8(newX25519(t)),
		"PKCS#1":                      block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsa2048)),
		"PKCS#1 under PKCS#8's name":  block("PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsa2048)),
		"SEC 1":                       block("EC PRIVATE KEY", sec1(t, p256)),
		"SEC 1 under PKCS#8's name":   block("PRIVATE KEY", sec1(t, p256)),
		"public Ed25519":              block("PUBLIC KEY", pkix(t, ed.Public())),
		"public P-256":                block("PUBLIC KEY", pkix(t, p256.Public())),
		"public RSA":                  block("PUBLIC KEY", pkix(t, rsa2048.Public())),
		"public under a private name": block("PRIVATE KEY", pkix(t, ed.Public())),
		"encrypted PKCS#8":            block("ENCRYPTED PRIVATE KEY", der.Bytes),
		"OpenSSH":                     block("OPENSSH PRIVATE KEY", der.Bytes),
		"certificate":                 block("CERTIFICATE", der.Bytes),
		"certificate, then the key":   append(block("CERTIFICATE", der.Bytes), good...),
		"no bytes":                    block("PRIVATE KEY", nil),
		"half the bytes":              block("PRIVATE KEY", der.Bytes[:len(der.Bytes)/2]),
		"seed only":                   block("PRIVATE KEY", ed.(ed25519.PrivateKey).Seed()),
		"zeros":                       block("PRIVATE KEY", make([]byte, 48)),
		"DER without PEM":             der.Bytes,
		"no end line":                 good[:len(good)-30],
		"no begin line":               good[20:],
		"token key":                   token.GenerateRefreshKey(),
		"JWK":                         []byte(`{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}`),
		"garbage":                     []byte("-----BEGIN PRIVATE KEY-----\n!!!!\n-----END PRIVATE KEY-----\n"),
		"empty":                       {},
		"nothing":                     nil,
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

// thumbprint computes RFC 7638 by another way than the package: encoding/json writes the members of a map in order
// and without white space.
func thumbprint(public crypto.PublicKey) string {
	members := map[string]string{}
	switch key := public.(type) {
	case ed25519.PublicKey:
		members = map[string]string{"kty": "OKP", "crv": "Ed25519", "x": encode(string(key))}
	case *ecdsa.PublicKey:
		point, err := key.Bytes()
		if err != nil {
			panic(err)
		}
		members = map[string]string{
			"kty": "EC", "crv": "P-256", "x": encode(string(point[1:33])), "y": encode(string(point[33:])),
		}
	case *rsa.PublicKey:
		e := big.NewInt(int64(key.E)).Bytes()
		members = map[string]string{"kty": "RSA", "n": encode(string(key.N.Bytes())), "e": encode(string(e))}
	}
	text, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(text)
	return encode(string(sum[:]))
}

// readPublic makes a public key of a key set's member, as a verifier elsewhere does.
func readPublic(tb testing.TB, key map[string]string) crypto.PublicKey {
	tb.Helper()
	switch key["kty"] + key["crv"] {
	case "OKPEd25519":
		return ed25519.PublicKey(decode(tb, key["x"]))
	case "ECP-256":
		point := slices.Concat([]byte{4}, decode(tb, key["x"]), decode(tb, key["y"]))
		public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
		if err != nil {
			tb.Fatal(err)
		}
		return public
	case "RSA":
		e := new(big.Int).SetBytes(decode(tb, key["e"]))
		return &rsa.PublicKey{N: new(big.Int).SetBytes(decode(tb, key["n"])), E: int(e.Int64())}
	}
	tb.Fatalf("no key is made of %v", key)
	return nil
}

func sortedNames[V any](members map[string]V) []string { return slices.Sorted(maps.Keys(members)) }

func decode(tb testing.TB, text string) []byte {
	tb.Helper()
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func block(name string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der})
}

func newECDSA(tb testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func newRSA(tb testing.TB, bits int) *rsa.PrivateKey {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func newX25519(tb testing.TB) *ecdh.PrivateKey {
	tb.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func sec1(tb testing.TB, key *ecdsa.PrivateKey) []byte {
	tb.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

func pkix(tb testing.TB, public crypto.PublicKey) []byte {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}
