package token_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/internal/token"
	"remit/test/prover"
)

var atNow = time.Unix(1_790_000_000, 0)

// keySetOf returns the set of the keys; a kid of "" is none.
func keySetOf(t testing.TB, keys map[string]*prover.Key, order ...string) token.JWKS {
	t.Helper()
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	for _, kid := range order {
		jwk := keys[kid].JWK()
		if kid != "" {
			jwk["kid"] = kid
		}
		set.Keys = append(set.Keys, jwk)
	}
	text := must(json.Marshal(set))(t)
	return must(token.ReadJWKS(text, 64))(t)
}

func assertedClaims() map[string]any {
	return map[string]any{
		"iss": "a", "sub": "b", "aud": "https://remit.example.com", "jti": "c", "repository": "org/x", "n": 7,
		"exp": atNow.Add(time.Minute).Unix(), "nbf": atNow.Unix(), "iat": atNow.Unix(),
	}
}

func TestAnAssertionIsReadAsItWasSigned(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"EdDSA", "ES256", "ES384", "RS256", "PS256"} {
		key := prover.New(algorithm)
		text := key.Sign(map[string]any{"alg": algorithm, "typ": "JWT", "x5t": "ignored", "jwk": "ignored"}, assertedClaims())
		a, err := token.ParseAssertion(text)
		if err != nil {
			t.Fatalf("%s: %v", algorithm, err)
		}
		if a.Issuer != "a" || a.Subject != "b" || a.ID != "c" || a.Type != "JWT" || !slices.Equal(a.Audience, []string{"https://remit.example.com"}) ||
			!a.Expires.Equal(atNow.Add(time.Minute)) {
			t.Errorf("%s: read %+v", algorithm, a)
		}
		if repository, is := a.Text("repository"); repository != "org/x" || !is {
			t.Errorf("repository is %q", repository)
		}
		if _, is := a.Text("n"); is {
			t.Error("a number is taken for a string")
		}
		if err := a.CheckTimes(atNow); err != nil {
			t.Errorf("%s: times: %v", algorithm, err)
		}
		if err := a.Verify(keySetOf(t, map[string]*prover.Key{"": key}, "")); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		if err := a.Verify(keySetOf(t, map[string]*prover.Key{"": prover.New(algorithm)}, "")); !errors.Is(err, token.ErrSignature) {
			t.Errorf("%s by another key: %v", algorithm, err)
		}
	}
}

func TestAMalformedAssertionIsRefused(t *testing.T) {
	t.Parallel()
	key := prover.New("EdDSA")
	good := key.Sign(map[string]any{"alg": "EdDSA"}, assertedClaims())
	head, rest, _ := strings.Cut(good, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	for name, text := range map[string]string{
		"empty":                  "",
		"two parts":              head + "." + claims,
		"four parts":             good + ".x",
		"five parts":             good + ".x.y",
		"padded":                 good + "=",
		"line break":             head + ".\n" + claims + "." + signature,
		"stray bits":             good[:len(good)-1] + "_",
		"8 KiB and a byte":       good + strings.Repeat("A", token.MaxAssertionSize+1-len(good)),
		"no header":              "." + claims + "." + signature,
		"alg none":               key.Sign(map[string]any{"alg": "none"}, assertedClaims()),
		"alg None":               key.Sign(map[string]any{"alg": "None"}, assertedClaims()),
		"no alg":                 key.Sign(map[string]any{"typ": "JWT"}, assertedClaims()),
		"HMAC":                   key.Sign(map[string]any{"alg": "HS256"}, assertedClaims()),
		"ES512":                  key.Sign(map[string]any{"alg": "ES512"}, assertedClaims()),
		"ES256K":                 key.Sign(map[string]any{"alg": "ES256K"}, assertedClaims()),
		"crit":                   key.Sign(map[string]any{"alg": "EdDSA", "crit": []string{"exp"}}, assertedClaims()),
		"crit null":              key.Sign(map[string]any{"alg": "EdDSA", "crit": nil}, assertedClaims()),
		"b64":                    key.Sign(map[string]any{"alg": "EdDSA", "b64": false, "crit": []string{"b64"}}, assertedClaims()),
		"kid a number":           key.Sign(map[string]any{"alg": "EdDSA", "kid": 7}, assertedClaims()),
		"alg twice":              key.SignText(`{"alg":"HS256","alg":"EdDSA"}`, `{}`),
		"claim twice":            key.SignText(`{"alg":"EdDSA"}`, `{"sub":"a","sub":"b"}`),
		"claim twice, deep":      key.SignText(`{"alg":"EdDSA"}`, `{"x":{"a":1,"a":2}}`),
		"not UTF-8":              key.SignText(`{"alg":"EdDSA"}`, "{\"sub\":\"\xff\"}"),
		"claims null":            key.SignText(`{"alg":"EdDSA"}`, `null`),
		"claims an array":        key.SignText(`{"alg":"EdDSA"}`, `[]`),
		"header null":            key.SignText(`null`, `{}`),
		"trailing":               key.SignText(`{"alg":"EdDSA"}`, `{}{}`),
		"a byte order mark":      key.SignText(`{"alg":"EdDSA"}`, "\ufeff{}"),
		"exp a text":             key.SignText(`{"alg":"EdDSA"}`, `{"exp":"1790000060"}`),
		"exp null":               key.SignText(`{"alg":"EdDSA"}`, `{"exp":null}`),
		"exp beyond all times":   key.SignText(`{"alg":"EdDSA"}`, `{"exp":1e300}`),
		"exp infinite":           key.SignText(`{"alg":"EdDSA"}`, `{"exp":1e999}`),
		"exp below 0":            key.SignText(`{"alg":"EdDSA"}`, `{"exp":-1790000060}`),
		"iat an array":           key.SignText(`{"alg":"EdDSA"}`, `{"iat":[1]}`),
		"sub a number":           key.SignText(`{"alg":"EdDSA"}`, `{"sub":7}`),
		"jti null":               key.SignText(`{"alg":"EdDSA"}`, `{"jti":null}`),
		"aud a number":           key.SignText(`{"alg":"EdDSA"}`, `{"aud":7}`),
		"aud of numbers":         key.SignText(`{"alg":"EdDSA"}`, `{"aud":["a",7]}`),
		"aud of null":            key.SignText(`{"alg":"EdDSA"}`, `{"aud":[null]}`),
		"aud an object":          key.SignText(`{"alg":"EdDSA"}`, `{"aud":{"a":"b"}}`),
		"the claims' whole text": "{}.{}.{}",
	} {
		if a, err := token.ParseAssertion(text); !errors.Is(err, token.ErrMalformed) || a != nil {
			t.Errorf("%s: %+v, %v; want ErrMalformed", name, a, err)
		}
	}
}

func TestTheKeyOfAnAssertionIsChosenByKidAndAlgorithm(t *testing.T) {
	t.Parallel()
	keys := map[string]*prover.Key{"ed": prover.New("EdDSA"), "ec": prover.New("ES256"), "ec2": prover.New("ES256"), "rsa": prover.New("RS256")}
	unnamed := map[string]*prover.Key{"": keys["ec"], "ed": keys["ed"]}
	many := map[string]*prover.Key{}
	var order []string
	for _, name := range strings.Fields("a b c d e f g h i") {
		many[name] = prover.New("EdDSA")
		order = append(order, name)
	}
	all := keySetOf(t, keys, "ed", "ec", "ec2", "rsa")
	for name, c := range map[string]struct {
		key  *prover.Key
		head map[string]any
		set  token.JWKS
		want error
	}{
		"by kid":                        {keys["ec2"], map[string]any{"alg": "ES256", "kid": "ec2"}, all, nil},
		"without kid":                   {keys["ec2"], map[string]any{"alg": "ES256"}, all, nil},
		"another's kid":                 {keys["ec2"], map[string]any{"alg": "ES256", "kid": "ec"}, all, token.ErrSignature},
		"the kid of another kind":       {keys["ec2"], map[string]any{"alg": "ES256", "kid": "rsa"}, all, token.ErrUnknownKey},
		"a kid that was rotated away":   {keys["ec2"], map[string]any{"alg": "ES256", "kid": "ec2"}, keySetOf(t, keys, "ed", "ec"), token.ErrUnknownKey},
		"no kid, rotated away":          {keys["ec2"], map[string]any{"alg": "ES256"}, keySetOf(t, keys, "ed", "ec"), token.ErrSignature},
		"a kid, and a key without":      {keys["ec"], map[string]any{"alg": "ES256", "kid": "any"}, keySetOf(t, unnamed, "ed", ""), nil},
		"no key of the algorithm":       {keys["rsa"], map[string]any{"alg": "RS256"}, keySetOf(t, keys, "ed", "ec"), token.ErrUnknownKey},
		"RSA by another of its methods": {&prover.Key{Algorithm: "PS384", Private: keys["rsa"].Private}, map[string]any{"alg": "PS384"}, all, nil},
		"PS256 called RS256":            {&prover.Key{Algorithm: "PS256", Private: keys["rsa"].Private}, map[string]any{"alg": "RS256"}, all, token.ErrSignature},
		"ES256 called ES384":            {keys["ec"], map[string]any{"alg": "ES384"}, all, token.ErrUnknownKey},
		"the eighth":                    {many["h"], map[string]any{"alg": "EdDSA"}, keySetOf(t, many, order...), nil},
		"the ninth":                     {many["i"], map[string]any{"alg": "EdDSA"}, keySetOf(t, many, order...), token.ErrSignature},
		"the ninth, by kid":             {many["i"], map[string]any{"alg": "EdDSA", "kid": "i"}, keySetOf(t, many, order...), nil},
	} {
		a, err := token.ParseAssertion(c.key.Sign(c.head, assertedClaims()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := a.Verify(c.set); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestThePublicKeyIsNoSecret: what a verifier that lets the token choose the method would take.
func TestThePublicKeyIsNoSecret(t *testing.T) {
	t.Parallel()
	key := prover.New("RS256")
	jwk := must(json.Marshal(key.JWK()))(t)
	encode := base64.RawURLEncoding.EncodeToString
	for _, algorithm := range []string{"HS256", "RS256"} {
		signed := encode([]byte(`{"alg":"`+algorithm+`"}`)) + "." + encode([]byte(`{"sub":"a"}`))
		mac := hmac.New(sha256.New, jwk)
		mac.Write([]byte(signed))
		a, err := token.ParseAssertion(signed + "." + encode(mac.Sum(nil)))
		if err == nil {
			err = a.Verify(keySetOf(t, map[string]*prover.Key{"": key}, ""))
		}
		if err == nil {
			t.Errorf("an HMAC by the public key is taken for %s", algorithm)
		}
	}
}

func TestTheTimesOfAnAssertion(t *testing.T) {
	t.Parallel()
	key := prover.New("EdDSA")
	at := func(d time.Duration) float64 { return float64(atNow.Add(d).UnixMilli()) / 1000 }
	for name, c := range map[string]struct {
		claims map[string]any
		want   error
	}{
		"no exp":             {map[string]any{"iat": at(0)}, token.ErrClaims},
		"exp ahead":          {map[string]any{"exp": at(time.Second)}, nil},
		"exp now":            {map[string]any{"exp": at(0)}, nil},
		"exp within skew":    {map[string]any{"exp": at(-29500 * time.Millisecond)}, nil},
		"exp beyond skew":    {map[string]any{"exp": at(-30 * time.Second)}, token.ErrExpired},
		"exp long ago":       {map[string]any{"exp": 1}, token.ErrExpired},
		"exp in 50 years":    {map[string]any{"exp": at(50 * 365 * 24 * time.Hour)}, nil},
		"nbf within skew":    {map[string]any{"exp": at(time.Minute), "nbf": at(30 * time.Second)}, nil},
		"nbf beyond skew":    {map[string]any{"exp": at(time.Minute), "nbf": at(30500 * time.Millisecond)}, token.ErrClaims},
		"iat within skew":    {map[string]any{"exp": at(time.Minute), "iat": at(30 * time.Second)}, nil},
		"iat beyond skew":    {map[string]any{"exp": at(time.Minute), "iat": at(30500 * time.Millisecond)}, token.ErrClaims},
		"exp at the epoch":   {map[string]any{"exp": 0}, token.ErrExpired},
		"nbf at the epoch":   {map[string]any{"exp": at(time.Minute), "nbf": 0, "iat": 0}, nil},
		"iat long ago":       {map[string]any{"exp": at(time.Minute), "iat": 1}, nil},
		"expired, nbf ahead": {map[string]any{"exp": at(-time.Hour), "nbf": at(time.Hour)}, token.ErrClaims},
	} {
		a, err := token.ParseAssertion(key.Sign(map[string]any{"alg": "EdDSA"}, c.claims))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := a.CheckTimes(atNow); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestTypeAndAudienceOfAnAssertionAreComparedExactly(t *testing.T) {
	t.Parallel()
	key := prover.New("EdDSA")
	parse := func(head, claims map[string]any) *token.Assertion {
		head["alg"] = "EdDSA"
		return must(token.ParseAssertion(key.Sign(head, claims)))(t)
	}
	for typ, want := range map[string]bool{"": true, "JWT": true, "jwt": true, "application/JWT": true, "at+jwt": false, "dpop+jwt": false, "JWT2": false} {
		if got := parse(map[string]any{"typ": typ}, map[string]any{}).HasType("JWT"); got != want {
			t.Errorf("typ %q: %t", typ, got)
		}
	}
	for _, c := range []struct {
		aud  any
		want bool
	}{
		{"https://a", true}, {[]string{"https://b", "https://a"}, true}, {[]string{}, false}, {"https://a/", false},
		{"https://A", false}, {"https://a https://b", false}, {"", false}, {[]string{"https://a/oauth2"}, false},
	} {
		if got := parse(map[string]any{}, map[string]any{"aud": c.aud}).IsFor("https://a", "https://c"); got != c.want {
			t.Errorf("aud %v: %t", c.aud, got)
		}
	}
	if parse(map[string]any{}, map[string]any{}).IsFor("", "https://a") {
		t.Error("an assertion without aud has an audience")
	}
}

// FuzzAssertion: nothing panics, and no text verifies whose signature the key would not make of it. Ed25519 is deterministic.
func FuzzAssertion(f *testing.F) {
	seed := make([]byte, ed25519.SeedSize)
	private := ed25519.NewKeyFromSeed(seed)
	key := &prover.Key{Algorithm: "EdDSA", Private: private}
	set := keySetOf(f, map[string]*prover.Key{"k": key}, "k")
	f.Add(key.Sign(map[string]any{"alg": "EdDSA", "kid": "k"}, assertedClaims()))
	f.Add(key.Sign(map[string]any{"alg": "none"}, assertedClaims()))
	f.Add(key.SignText(`{"alg":"EdDSA"}`, `{"aud":["a"],"exp":1e3,"sub":"a"}`))
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := token.ParseAssertion(text)
		if err != nil {
			if !errors.Is(err, token.ErrMalformed) {
				t.Errorf("%v", err)
			}
			return
		}
		_ = a.CheckTimes(atNow)
		if a.Verify(set) != nil {
			return
		}
		signed := text[:strings.LastIndexByte(text, '.')]
		if want := signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(signed))); text != want {
			t.Errorf("%q verifies; the key signs %q", text, want)
		}
	})
}
