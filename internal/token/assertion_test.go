package token_test

import (
	"crypto/ed25519"
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
	return must(token.ReadJWKS(must(json.Marshal(set))(t), 64))(t)
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
		a := must(token.ParseAssertion(text))(t)
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
		if err := errors.Join(a.CheckTimes(atNow), a.Verify(keySetOf(t, map[string]*prover.Key{"": key}, ""))); err != nil {
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
	texts := append(deformed(good), good[strings.IndexByte(good, '.'):], good+strings.Repeat("A", token.MaxAssertionSize+1-len(good)))
	for _, header := range []string{
		"null", "{}", `{"typ":"JWT"}`, `{"alg":"none"}`, `{"alg":"HS256"}`, `{"alg":"ES256K"}`, `{"alg":"HS256","alg":"EdDSA"}`,
		`{"alg":"EdDSA","crit":["exp"]}`, `{"alg":"EdDSA","crit":null}`, `{"alg":"EdDSA","b64":false,"crit":["b64"]}`, `{"alg":"EdDSA","kid":7}`,
	} {
		texts = append(texts, key.SignText(header, `{"exp":1}`))
	}
	for _, claims := range []string{
		"null", "[]", "{}{}", "\ufeff{}", "{\"sub\":\"\xff\"}", `{"sub":"a","sub":"b"}`, `{"x":{"a":1,"a":2}}`, `{"exp":"1790000060"}`, `{"exp":null}`,
		`{"exp":1e300}`, `{"exp":1e999}`, `{"exp":-1790000060}`, `{"iat":[1]}`, `{"sub":7}`, `{"jti":null}`, `{"aud":7}`, `{"aud":["a",7]}`,
		`{"aud":[null]}`, `{"aud":{"a":"b"}}`,
	} {
		texts = append(texts, key.SignText(`{"alg":"EdDSA"}`, claims))
	}
	for _, text := range texts {
		if a, err := token.ParseAssertion(text); !errors.Is(err, token.ErrMalformed) || a != nil {
			t.Errorf("%q: %+v, %v; want ErrMalformed", text, a, err)
		}
	}
	for _, text := range []string{good, key.SignText(`{"alg":"EdDSA"}`, `{"exp":1}`)} {
		must(token.ParseAssertion(text))(t)
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
		a := must(token.ParseAssertion(c.key.Sign(c.head, assertedClaims())))(t)
		if err := a.Verify(c.set); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestTheTimesOfAnAssertion(t *testing.T) {
	t.Parallel()
	type claims = map[string]any
	key := prover.New("EdDSA")
	at := func(d time.Duration) float64 { return float64(atNow.Add(d).UnixMilli()) / 1000 }
	within := func(name string, value any) claims { return claims{"exp": at(time.Minute), name: value} }
	for want, all := range map[error][]claims{
		nil: {
			{"exp": at(time.Second)}, {"exp": at(0)}, {"exp": at(-29500 * time.Millisecond)}, {"exp": at(50 * 365 * 24 * time.Hour)},
			within("nbf", at(30*time.Second)), within("iat", at(30*time.Second)), within("nbf", 0), within("iat", 0), within("iat", 1),
		},
		token.ErrExpired: {{"exp": at(-30 * time.Second)}, {"exp": 1}, {"exp": 0}},
		token.ErrClaims: {
			{"iat": at(0)}, {"exp": at(-time.Hour), "nbf": at(time.Hour)}, within("nbf", at(30500*time.Millisecond)),
			within("iat", at(30500*time.Millisecond)),
		},
	} {
		for _, c := range all {
			if err := must(token.ParseAssertion(key.Sign(claims{"alg": "EdDSA"}, c)))(t).CheckTimes(atNow); !errors.Is(err, want) {
				t.Errorf("%v: %v, want %v", c, err, want)
			}
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
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
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
