package token_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/internal/token"
	"remit/test/prover"
)

const (
	proofURL   = "https://remit.example/v1/auth/verify"
	proofToken = "a.b.c"
)

// provers are one key of each kind that proofs are signed with, by algorithm.
var provers = sync.OnceValue(func() map[string]*prover.Key {
	keys := map[string]*prover.Key{}
	for _, algorithm := range token.ProofAlgorithms() {
		keys[algorithm] = prover.New(algorithm)
	}
	return keys
})

// proofUse is a request at noon that presents an access token bound to the key.
func proofUse(key *prover.Key) token.ProofUse {
	return token.ProofUse{
		Method: "GET", URLs: []string{"http://127.0.0.1:8080/v1/auth/verify", proofURL},
		TokenHash: token.TokenHash(proofToken), Thumbprint: key.Thumbprint(), Now: noon,
	}
}

func goodProof() prover.Proof {
	return prover.Proof{Method: "GET", URL: proofURL, Token: proofToken, Issued: noon, ID: "one"}
}

func proofRing(t testing.TB) *token.Keyring { return newRefreshKeyring(t, refreshKey(t, 0)) }

// proofWith returns a proof for proofUse that the key signs over a header and claims with these members changed; nil removes one.
func proofWith(key *prover.Key, header, claims map[string]any) string {
	members := func(all, changes map[string]any) map[string]any {
		all = merged(all, changes)
		maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
		return all
	}
	return key.Sign(members(key.Header(), header), members(goodProof().Claims(), claims))
}

func TestAProofMayBeWrittenInOtherWays(t *testing.T) {
	t.Parallel()
	type members = map[string]any
	key := provers()["ES256"]
	for _, text := range []string{
		proofWith(key, nil, members{"htu": "HTTPS://REMIT.example:443/v1/auth/verify"}), proofWith(key, nil, members{"htu": proofURL + "?scope=a#b"}),
		proofWith(key, nil, members{"htu": "http://127.0.0.1:8080/v1/auth/verify"}), proofWith(key, nil, members{"sub": "x", "exp": 1}),
		proofWith(key, members{"kid": "k"}, nil), proofWith(key, members{"jwk": merged(key.JWK(), members{"alg": "ES256", "use": "sig", "kid": "k"})}, nil),
		proofWith(key, nil, members{"iat": float64(noon.Unix()) + 0.5}), proofWith(key, nil, members{"iat": noon.Add(-60 * time.Second).Unix()}),
		proofWith(key, nil, members{"iat": noon.Add(30 * time.Second).Unix()}), proofWith(key, nil, members{"jti": strings.Repeat("j", 255)}),
		proofWith(key, nil, members{"nonce": proofRing(t).ProofNonce(noon)}),
	} {
		if _, err := proofRing(t).VerifyProof(text, proofUse(key), nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAnyOtherProofIsRefused(t *testing.T) {
	t.Parallel()
	key := provers()["ES256"]
	at := func(after time.Duration) int64 { return noon.Add(after).Unix() }
	type refused struct {
		member string
		want   error
		values []any // nil for none
	}
	wants := func(what string, value any, text string, want error) {
		if _, err := proofRing(t).VerifyProof(text, proofUse(key), nil); !errors.Is(err, want) {
			t.Errorf("%s %v: %v, want %v", what, value, err, want)
		}
	}
	for _, claim := range []refused{
		{"htm", token.ErrClaims, []any{"POST", "get", nil}},
		{"htu", token.ErrClaims, []any{nil, "https://other.example/v1/auth/verify", "http://remit.example/v1/auth/verify", proofURL + "/", "/v1",
			"https://remit.example:8443/v1/auth/verify", "https://remit.example/V1/auth/verify", "https://a@remit.example/v1/auth/verify"}},
		{"ath", token.ErrClaims, []any{prover.Hash("another"), nil}},
		{"iat", token.ErrExpired, []any{at(-61 * time.Second)}},
		{"iat", token.ErrClaims, []any{at(31 * time.Second), nil}},
		{"iat", token.ErrMalformed, []any{"1"}},
		{"jti", token.ErrClaims, []any{nil, "", strings.Repeat("j", 256)}},
		{"nonce", token.ErrNonce, []any{"abc", "", newRefreshKeyring(t, refreshKey(t, 1)).ProofNonce(noon),
			proofRing(t).ProofNonce(noon.Add(-10*time.Minute - time.Second)), proofRing(t).ProofNonce(noon.Add(5 * time.Minute))}},
	} {
		for _, value := range claim.values {
			wants(claim.member, value, proofWith(key, nil, map[string]any{claim.member: value}), claim.want)
		}
	}
	for _, member := range []refused{
		{"typ", token.ErrMalformed, []any{"at+jwt", nil}},
		{"alg", token.ErrMalformed, []any{"none", "HS256", "RS512"}},
		{"alg", token.ErrKey, []any{"ES384"}}, // of another kind of key
		{"crit", token.ErrMalformed, []any{[]string{"b64"}}},
		{"jwk", token.ErrKey, []any{nil, merged(key.JWK(), map[string]any{"d": "AA"}), map[string]any{"kty": "oct", "k": "AA"},
			map[string]any{"keys": []any{key.JWK()}}, merged(key.JWK(), map[string]any{"use": "enc"}), prover.New("ES256").JWK()}},
	} {
		for _, value := range member.values {
			wants(member.member, value, proofWith(key, map[string]any{member.member: value}, nil), member.want)
		}
	}
}

// Where no access token is presented any key may sign, but its own header must name it.
func TestAProofIsRefusedWhoseSignatureIsNotItsKeys(t *testing.T) {
	t.Parallel()
	for algorithm, key := range provers() {
		use := proofUse(key)
		use.TokenHash, use.Thumbprint = "", ""
		header := key.Header()
		header["jwk"] = prover.New(algorithm).JWK()
		if _, err := proofRing(t).VerifyProof(key.Sign(header, goodProof().Claims()), use, nil); !errors.Is(err, token.ErrSignature) {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

func TestAProofOfAnotherFormIsRefused(t *testing.T) {
	t.Parallel()
	key := provers()["ES256"]
	good := key.Prove(goodProof())
	header, claims := string(must(json.Marshal(key.Header()))(t)), string(must(json.Marshal(goodProof().Claims()))(t))
	for _, text := range append(deformed(good),
		strings.Join(strings.Split(good, ".")[:2], ".")+".",
		key.Sign(key.Header(), merged(goodProof().Claims(), map[string]any{"x": strings.Repeat("x", token.MaxProofSize)})),
		key.SignText(header, strings.Replace(claims, `{`, `{"htm":"GET",`, 1)), key.SignText(header, strings.Replace(claims, `"htm"`, `"HTM"`, 1)),
		key.SignText(strings.Replace(header, `{`, `{"typ":"dpop+jwt",`, 1), claims), key.SignText(header, claims[1:]), key.SignText(header, `[]`),
		key.SignText(header, claims+" x"),
	) {
		if _, err := proofRing(t).VerifyProof(text, proofUse(key), nil); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
	if _, err := proofRing(t).VerifyProof(key.SignText(header, claims), proofUse(key), nil); err != nil {
		t.Errorf("this test writes no good proof: %v", err)
	}
}

func TestAProofOfEachKindIsAcceptedAndAKnownKeyChangesNoOutcome(t *testing.T) {
	t.Parallel()
	ring, key, other := proofRing(t), provers()["ES256"], provers()["EdDSA"]
	for algorithm, key := range provers() {
		first := must(ring.VerifyProof(key.Prove(goodProof()), proofUse(key), nil))(t)
		again, err := ring.VerifyProof(key.Prove(goodProof()), proofUse(key), first.Key)
		if err != nil || again.Key != first.Key || first.Key.Thumbprint() != key.Thumbprint() {
			t.Errorf("%s: %+v, and again %+v, %v", algorithm, first, again, err)
		}
	}
	first := must(ring.VerifyProof(key.Prove(goodProof()), proofUse(key), nil))(t)
	if _, err := ring.VerifyProof(other.Prove(goodProof()), proofUse(key), first.Key); !errors.Is(err, token.ErrKey) {
		t.Errorf("a proof of another key: %v", err)
	}
	forged := strings.Join(append(strings.Split(key.Prove(goodProof()), ".")[:2], strings.Split(key.Prove(prover.Proof{}), ".")[2]), ".")
	if _, err := ring.VerifyProof(forged, proofUse(key), first.Key); !errors.Is(err, token.ErrSignature) {
		t.Errorf("a forged proof: %v", err)
	}
}

func TestAFingerprintIsOfTheKeyAndTheID(t *testing.T) {
	t.Parallel()
	ring, key := proofRing(t), provers()["ES256"]
	fingerprint := func(key *prover.Key, id string, method string) [32]byte {
		t.Helper()
		use, p := proofUse(key), goodProof()
		use.Method, p.Method, p.ID = method, method, id
		return must(ring.VerifyProof(key.Prove(p), use, nil))(t).Fingerprint
	}
	if fingerprint(key, "one", "GET") != fingerprint(key, "one", "POST") {
		t.Error("one jti for two requests has two fingerprints")
	}
	if fingerprint(key, "one", "GET") == fingerprint(key, "two", "GET") || fingerprint(key, "one", "GET") == fingerprint(provers()["EdDSA"], "one", "GET") {
		t.Error("two proofs have one fingerprint")
	}
}

func TestANonceIsAcceptedForFiveToTenMinutes(t *testing.T) {
	t.Parallel()
	key := provers()["EdDSA"]
	old, fresh := refreshKey(t, 0), refreshKey(t, 1)
	nonce := newRefreshKeyring(t, old).ProofNonce(noon) // noon begins a period
	for name, test := range map[string]struct {
		ring *token.Keyring
		now  time.Time
		want error
	}{
		"at once":                       {newRefreshKeyring(t, old), noon, nil},
		"at the end of the next period": {newRefreshKeyring(t, old), noon.Add(10*time.Minute - time.Second), nil},
		"after it":                      {newRefreshKeyring(t, old), noon.Add(10 * time.Minute), token.ErrNonce},
		"by a clock a little behind":    {newRefreshKeyring(t, old), noon.Add(-30 * time.Second), nil},
		"by a clock far behind":         {newRefreshKeyring(t, old), noon.Add(-31 * time.Second), token.ErrNonce},
		"after the keys were rotated":   {newRefreshKeyring(t, fresh, old), noon, nil},
		"after the old key was dropped": {newRefreshKeyring(t, fresh), noon, token.ErrNonce},
	} {
		use, p := proofUse(key), goodProof()
		use.Now, p.Issued, p.Nonce = test.now, test.now, nonce
		if _, err := test.ring.VerifyProof(key.Prove(p), use, nil); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if again := newRefreshKeyring(t, old).ProofNonce(noon.Add(5*time.Minute - 1)); again != nonce {
		t.Error("one period has two nonces")
	}
	if next := newRefreshKeyring(t, old).ProofNonce(noon.Add(5 * time.Minute)); next == nonce {
		t.Error("two periods have one nonce")
	}
}

func TestProofURLHasOneSpelling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ scheme, host, path, want string }{
		{"https", "remit.example", "/a", "https://remit.example/a"},
		{"HTTPS", "Remit.Example:443", "/A", "https://remit.example/A"},
		{"http", "[::1]:80", "", "http://[::1]/"},
		{"http", "remit.example:443", "/", "http://remit.example:443/"},
	} {
		if got := token.ProofURL(test.scheme, test.host, test.path); got != test.want {
			t.Errorf("%s %s %s: %s, want %s", test.scheme, test.host, test.path, got, test.want)
		}
	}
}

// FuzzProof finds no text that is accepted but a proof that one of the keys signed for this request.
func FuzzProof(f *testing.F) {
	ring, key := proofRing(f), provers()["EdDSA"]
	for _, other := range provers() {
		f.Add(other.Prove(goodProof()))
	}
	good := key.Prove(goodProof())
	f.Add(good)
	f.Add(key.SignText(`{"typ":"dpop+jwt","alg":"none","jwk":{}}`, `{"jti":"a","iat":1e308}`))
	f.Add(strings.ToUpper(good))
	known := must(ring.VerifyProof(good, proofUse(key), nil))(f)
	signed := good[:strings.LastIndexByte(good, '.')]
	f.Fuzz(func(t *testing.T, text string) {
		_, err := ring.VerifyProof(text, proofUse(key), nil)
		_, again := ring.VerifyProof(text, proofUse(key), known.Key)
		if (err == nil) != (again == nil) {
			t.Fatalf("%v without the known key, %v with it", err, again)
		}
		if err == nil && !strings.HasPrefix(text, signed+".") {
			t.Fatalf("accepted %q", text)
		}
	})
}

func merged(a, b map[string]any) map[string]any {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}
