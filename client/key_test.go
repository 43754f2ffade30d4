package client_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"remit/client"
)

type published struct {
	X, Y, N, E, D string
	ID            string `json:"kid"`
	Algorithm     string `json:"alg"`
	KeyType       string `json:"kty"`
	CurveName     string `json:"crv"`
}

func segment(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return raw
}

// verifies fails the test unless the JWT is signed by the key, and reads its header and claims.
func (k published) verifies(t *testing.T, token string, header, claims any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWT", token)
	}
	signed, signature := []byte(parts[0]+"."+parts[1]), segment(t, parts[2])
	if !k.signed(t, signed, signature) {
		t.Errorf("the key %+v has not signed %s", k, token)
	}
	for i, into := range []any{header, claims} {
		noError(t, json.Unmarshal(segment(t, parts[i]), into))
	}
}

func (k published) signed(t *testing.T, message, signature []byte) bool {
	t.Helper()
	short, long := sha256.Sum256(message), sha512.Sum384(message)
	number := func(text string) *big.Int { return new(big.Int).SetBytes(segment(t, text)) }
	switch k.Algorithm {
	case "EdDSA":
		return ed25519.Verify(segment(t, k.X), message, signature)
	case "ES256", "ES384":
		curve, digest := elliptic.P256(), short[:]
		if k.Algorithm == "ES384" {
			curve, digest = elliptic.P384(), long[:]
		}
		half := len(signature) / 2
		key, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, segment(t, k.X), segment(t, k.Y)))
		if err != nil {
			return false
		}
		return ecdsa.Verify(key, digest, new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
	}
	key := &rsa.PublicKey{N: number(k.N), E: int(number(k.E).Int64())}
	if k.Algorithm == "PS256" {
		return rsa.VerifyPSS(key, crypto.SHA256, short[:], signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
	}
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, short[:], signature) == nil
}

func onlyKey(t *testing.T, set json.RawMessage) published {
	t.Helper()
	var read struct{ Keys []published }
	if err := json.Unmarshal(set, &read); err != nil || len(read.Keys) != 1 || strings.Contains(string(set), `"d"`) {
		t.Fatalf("%s: %v", set, err)
	}
	return read.Keys[0]
}

func generated(t *testing.T, a client.Algorithm) *client.Key {
	t.Helper()
	return must(client.GenerateKey(a))(t)
}

func inPEM(kind string, raw []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}

// texts are private keys in all the forms that keys come in, by the algorithm that each signs with.
func texts(t *testing.T) map[string][]string {
	t.Helper()
	small, large := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t), must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	noError(t, err)
	old := must(rsa.GenerateKey(rand.Reader, 2048))(t)
	pkcs8 := func(key any) string { return inPEM("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))(t)) }
	sec1 := inPEM("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(small))(t))
	jwkOf := func(text string) string { return string(must(client.ParseKey(text))(t).Text()) }
	return map[string][]string{
		"ES256": {pkcs8(small), sec1, "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + sec1, jwkOf(sec1), `{"keys":[` + jwkOf(sec1) + `]}`},
		"ES384": {pkcs8(large), jwkOf(pkcs8(large))},
		"EdDSA": {pkcs8(edwards), jwkOf(pkcs8(edwards)), string(generated(t, client.EdDSA).Text())},
		"RS256": {pkcs8(old), inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(old)), jwkOf(pkcs8(old))},
		"PS256": {strings.Replace(jwkOf(pkcs8(old)), `"RS256"`, `"PS256"`, 1)},
	}
}

func TestKeysAreReadInTheFormsTheyComeIn(t *testing.T) {
	t.Parallel()
	for algorithm, all := range texts(t) {
		for _, text := range all {
			key, err := client.ParseKey("\n" + text + "\n")
			if err != nil || string(key.Algorithm()) != algorithm {
				t.Fatalf("%s: %v, %v", algorithm, key, err)
			}
			set := must(client.PublicJWKS(text))(t)
			from, own := onlyKey(t, set), onlyKey(t, key.JWKS())
			if from != own || own.ID != key.Thumbprint() || own.Algorithm != algorithm {
				t.Errorf("%+v, of the key itself %+v", from, own)
			}
			if public, err := client.PublicJWKS(string(set)); err != nil || string(public) != string(set) {
				t.Errorf("%s reads as %s: %v", set, public, err)
			}
			own.verifies(t, must(client.AssertionBy(key, "a1", "https://remit.test"))(t), &struct{}{}, &struct{}{})
		}
	}
}

// The examples of RFC 7638 §3.1 and RFC 8037 appendix A.3.
func TestThumbprintsAreThoseOfTheRFCs(t *testing.T) {
	t.Parallel()
	for jwk, want := range map[string]string{
		`{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256"}`: "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
		`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
	} {
		set, err := client.PublicJWKS(jwk)
		if err != nil || onlyKey(t, set).ID != want {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
}

func TestKeysThatCannotBeUsedSayWhy(t *testing.T) {
	t.Parallel()
	_, whole, _ := strings.Cut(string(generated(t, client.ES256).Text()), "{")
	private := "{" + whole
	other := onlyKey(t, generated(t, client.ES256).JWKS())
	weak := must(rsa.GenerateKey(rand.Reader, 1024))(t)
	for text, want := range map[string]string{
		"":                                   "neither a JWK nor PEM",
		"rms_something":                      "neither a JWK nor PEM",
		"{":                                  "no JWK",
		`{"keys":[]}`:                        "set of 0 keys",
		`{"kty":"oct","k":"x"}`:              "public key",
		`{"kty":"oct","d":"x"}`:              `type "oct"`,
		`{"kty":"EC","crv":"P-521","d":"x"}`: `"P-521"`,
		string(generated(t, client.ES256).JWKS()):                                                                           "public key",
		strings.Replace(private, `"alg":"ES256"`, `"alg":"RS256"`, 1):                                                       "does not fit: ES256 does",
		strings.Replace(private, private[strings.Index(private, `"x":"`)+5:strings.Index(private, `"x":"`)+48], other.X, 1): "",
		"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----":                                  "decrypt it",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----":                                                      "cannot be read",
		inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(weak)):                                                         "1024 bits",
	} {
		_, err := client.ParseKey(text)
		unusable, is := errors.AsType[*client.UnusableCredential](err)
		if !is || unusable.Source != "key" || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
		if len(text) > 30 && err != nil && strings.Contains(err.Error(), text[len(text)-30:]) {
			t.Errorf("the error quotes the key: %v", err)
		}
	}
	if _, err := client.ReadKey(filepath.Join(t.TempDir(), "absent.pem")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "absent.pem") {
		t.Error(err)
	}
	long := filepath.Join(t.TempDir(), "long.pem")
	write(t, long, strings.Repeat("x", 1<<17))
	if _, err := client.ReadKey(long); err == nil || !strings.Contains(err.Error(), "longer than 64 KiB") {
		t.Error(err)
	}
	if _, err := client.GenerateKey("HS256"); err == nil {
		t.Error("a key for HS256 is made")
	}
}
