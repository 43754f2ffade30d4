package token

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// The keys of RFC 7638 §3.1 and RFC 8037 appendix A.
const (
	rfc7638Modulus = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCi" +
		"FV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6" +
		"qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
	rfc8037Key   = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	rfc7515ECKey = `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`
)

func TestThumbprintsAreThoseOfTheStandards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, key, thumbprint string }{
		{"RFC 7638 §3.1", `{"kty":"RSA","n":"` + rfc7638Modulus + `","e":"AQAB","alg":"RS256","kid":"2011-04-29"}`, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"},
		{"RFC 8037 A.3", rfc8037Key, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"},
	} {
		key, err := ParseJWK([]byte(c.key))
		if err != nil || key.Thumbprint() != c.thumbprint {
			t.Errorf("%s: thumbprint %q, %v; want %q", c.name, key.Thumbprint(), err, c.thumbprint)
		}
	}
}

func TestAKeySetIsReadBackFromItsOwnText(t *testing.T) {
	t.Parallel()
	set := must(ParseJWKS([]byte(`{"other":1,"keys":[
		{"kty":"RSA","n":"` + rfc7638Modulus + `","e":"AQAB","alg":"PS256","kid":"a","use":"sig","x5t":"ignored"},
		{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"b","key_ops":["verify"]}]}`)))(t)
	again, err := ParseJWKS([]byte(set.Text()))
	if err != nil || again.Text() != set.Text() || len(again) != 2 {
		t.Errorf("%s was read as %s, %v", set.Text(), again.Text(), err)
	}
	if strings.Contains(set.Text(), "ignored") || !strings.Contains(set.Text(), `"alg":"PS256","kid":"a"`) {
		t.Errorf("the text of the set is %s", set.Text())
	}
}

func TestAnUnusableKeyIsNamedByItsPlaceInTheSet(t *testing.T) {
	t.Parallel()
	for name, bad := range unusableKeys(t) {
		_, err := ParseJWKS(fmt.Appendf(nil, `{"keys":[%s,%s]}`, withKid(rfc8037Key, "good"), withKid(bad.key, "bad")))
		var refused *KeyError
		if !errors.As(err, &refused) || refused.Index != 1 || !strings.Contains(refused.Reason, bad.reason) || !errors.Is(err, ErrKey) {
			t.Errorf("%s: %v; want keys[1] and %q", name, err, bad.reason)
		}
		if keys, err := ReadJWKS(fmt.Appendf(nil, `{"keys":[%s,%s]}`, bad.key, rfc8037Key), MaxKeys); err != nil || len(keys) != 1 {
			t.Errorf("%s: of a published set %d keys are read, %v; want the other one", name, len(keys), err)
		}
	}
}

func withKid(key, kid string) string { return strings.Replace(key, "{", `{"kid":"`+kid+`",`, 1) }

type unusableKey struct{ key, reason string }

func unusableKeys(t *testing.T) map[string]unusableKey {
	t.Helper()
	ed := func(more string) string { return strings.Replace(rfc8037Key, "}", ","+more+"}", 1) }
	even, weak := new(big.Int).Lsh(big.NewInt(1), 2047), must(rsa.GenerateKey(rand.Reader, 1024))(t)
	return map[string]unusableKey{
		"private":           {ed(`"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"`), "private members"},
		"private, empty":    {ed(`"d":null`), "private members"},
		"symmetric":         {`{"kty":"oct","k":"c2VjcmV0"}`, "private members"},
		"for encryption":    {ed(`"use":"enc"`), "signatures"},
		"for signing":       {ed(`"key_ops":["sign"]`), "signatures"},
		"for nothing":       {ed(`"key_ops":[]`), "signatures"},
		"another algorithm": {ed(`"alg":"ES256"`), "alg"},
		"another curve":     {`{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}`, "must be RSA"},
		"X25519":            {strings.Replace(rfc8037Key, "Ed25519", "X25519", 1), "must be RSA"},
		"not on the curve":  {strings.Replace(rfc7515ECKey, `"x":"f8`, `"x":"g8`, 1), "point on its curve"},
		"short coordinate":  {strings.Replace(rfc7515ECKey, `"x":"f83O`, `"x":"`, 1), "32 bytes"},
		"weak RSA":          {`{"kty":"RSA","e":"AQAB","n":"` + encode(weak.N.Bytes()) + `"}`, "2048 to 8192 bits"},
		"giant RSA":         {`{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("_", 1368) + `"}`, "2048 to 8192 bits"},
		"even RSA":          {`{"kty":"RSA","e":"AQAB","n":"` + encode(even.Bytes()) + `"}`, "odd"},
		"exponent 3":        {`{"kty":"RSA","e":"Aw","n":"` + rfc7638Modulus + `"}`, "exponent 65537"},
		"no exponent":       {`{"kty":"RSA","n":"` + rfc7638Modulus + `"}`, "exponent 65537"},
		"padded":            {strings.Replace(rfc8037Key, "URo", "URo=", 1), "32 bytes"},
		"stray bits":        {strings.Replace(rfc8037Key, "URo", "URp", 1), "32 bytes"},
		"line break":        {strings.Replace(rfc8037Key, "11qY", `11\nqY`, 1), "32 bytes"},
		"small order":       {`{"kty":"OKP","crv":"Ed25519","x":"` + strings.Repeat("A", 43) + `"}`, "weak"},
		"a number":          {strings.Replace(rfc8037Key, `"11q`, `11,"y":"11q`, 1), "JSON Web Key"},
		"other capitals":    {strings.Replace(rfc8037Key, `"kty"`, `"KTY"`, 1), "must be RSA"},
	}
}

func TestWhatIsNoSetOfKeysIsRefused(t *testing.T) {
	t.Parallel()
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	for _, text := range []string{
		"", "null", "[]", "{}", rfc8037Key, `{"keys":null}`, set(), `{"keys":{}}`, set("null"), set(slices.Repeat([]string{rfc8037Key}, 9)...),
		`{"keys":[` + rfc8037Key + `],"keys":[` + rfc8037Key + `]}`, set(rfc8037Key) + " {}",
		set(withKid(rfc8037Key, "a"), withKid(rfc7515ECKey, "a")), set(rfc8037Key, withKid(rfc7515ECKey, "a")), // one kid, and one without
		set(strings.Replace(rfc8037Key, "}", `,"crv":"Ed25519"}`, 1)), set(withKid(rfc8037Key, "\xff")), set(withKid(rfc8037Key, strings.Repeat("k", 256))),
		`{"keys":[` + rfc8037Key + `],"x":"` + strings.Repeat("x", 17<<10) + `"}`,
	} {
		if keys, err := ParseJWKS([]byte(text)); !errors.Is(err, ErrKey) || keys != nil {
			t.Errorf("%.300q: %v, %v; want ErrKey", text, keys, err)
		}
	}
}

func TestEveryKindOfKeyIsRead(t *testing.T) {
	t.Parallel()
	p384 := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	point := must(p384.PublicKey.Bytes())(t)
	for _, c := range []struct{ key, algorithms string }{
		{rfc8037Key, "EdDSA Ed25519"},
		{rfc7515ECKey, "ES256"},
		{`{"kty":"EC","crv":"P-384","x":"` + encode(point[1:49]) + `","y":"` + encode(point[49:]) + `"}`, "ES384"},
		{`{"kty":"RSA","n":"AA` + rfc7638Modulus[:len(rfc7638Modulus)-1] + `","e":"AQAB"}`, ""},
		{`{"kty":"RSA","n":"` + rfc7638Modulus + `","e":"AQAB"}`, "RS256 RS384 RS512 PS256 PS384 PS512"},
		{`{"kty":"RSA","n":"` + rfc7638Modulus + `","e":"AQAB","alg":"PS256"}`, "PS256"},
	} {
		key, err := ParseJWK([]byte(c.key))
		if (err == nil) != (c.algorithms != "") {
			t.Errorf("%s: %v", c.key, err)
		}
		for _, algorithm := range append(AssertionAlgorithms(), "HS256", "none", "") {
			wanted := slices.Contains(strings.Fields(c.algorithms), algorithm)
			if fits := key.method(algorithm) != nil; fits != wanted {
				t.Errorf("%s fits %s: %t", c.key, algorithm, fits)
			}
		}
	}
}

func TestThePublishedKeysOfATrustDomainAreReadForItsTokensOnly(t *testing.T) {
	t.Parallel()
	use := func(use string) string {
		return strings.Replace(rfc8037Key, "{", `{"kid":"`+use+`","use":"`+use+`",`, 1)
	}
	bundle := fmt.Appendf(nil, `{"spiffe_sequence":7,"keys":[%s,%s,%s]}`, use("x509-svid"), use("jwt-svid"), use("sig"))
	keys, err := ReadJWKS(bundle, 8)
	if err != nil || len(keys) != 2 || keys[0].ID() != "jwt-svid" || keys[1].ID() != "sig" {
		t.Errorf("%+v, %v", keys, err)
	}
	if _, err := ParseJWK([]byte(use("jwt-svid"))); err == nil {
		t.Error("an agent's own key may have the use jwt-svid")
	}
}

// TestAWeakEd25519KeyTakesForgedSignatures shows of each point that is refused why it is: a signature of nothing but
// the neutral element is right for some of the messages.
func TestAWeakEd25519KeyTakesForgedSignatures(t *testing.T) {
	t.Parallel()
	forged := make([]byte, ed25519.SignatureSize)
	forged[0] = 1 // R is the neutral element, S is 0
	for _, point := range smallOrder {
		raw := must(hex.DecodeString(point))(t)
		taken := 0
		for i := range 64 {
			if ed25519.Verify(raw, fmt.Append(nil, i), forged) {
				taken++
			}
		}
		if taken == 0 {
			t.Errorf("%s takes no forged signature", point)
		}
		raw[31] |= 0x80
		if !hasSmallOrder(raw) {
			t.Errorf("%x is not refused", raw)
		}
	}
}

// FuzzJWKS: whatever is read is read back from its own text, and nothing panics.
func FuzzJWKS(f *testing.F) {
	for _, key := range []string{rfc8037Key, rfc7515ECKey, `{"kty":"RSA","n":"` + rfc7638Modulus + `","e":"AQAB"}`} {
		f.Add([]byte(`{"keys":[` + key + `]}`))
	}
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AA"},{"kty":"OKP","d":1}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := ReadJWKS(raw, MaxKeys); err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("ReadJWKS: %v", err)
		}
		set, err := ParseJWKS(raw)
		if err != nil {
			if !errors.Is(err, ErrKey) {
				t.Errorf("ParseJWKS: %v", err)
			}
			return
		}
		again, err := ParseJWKS([]byte(set.Text()))
		if err != nil || again.Text() != set.Text() {
			t.Errorf("%q became %q, %v", set.Text(), again.Text(), err)
		}
		for i, key := range set {
			if key.methods() == nil || key.Thumbprint() != again[i].Thumbprint() {
				t.Errorf("%q has no method, or another thumbprint", set.Text())
			}
		}
	})
}
