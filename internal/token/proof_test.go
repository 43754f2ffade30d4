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

// goodProof is a proof for proofUse.
func goodProof() prover.Proof {
	return prover.Proof{Method: "GET", URL: proofURL, Token: proofToken, Issued: noon, ID: "one"}
}

func proofRing(t testing.TB) *token.Keyring { return newRefreshKeyring(t, refreshKey(t, 0)) }

func TestAProofOfEachKindIsAccepted(t *testing.T) {
	t.Parallel()
	for algorithm, key := range provers() {
		proof, err := proofRing(t).VerifyProof(key.Prove(goodProof()), proofUse(key), nil)
		if err != nil || proof.Key.Thumbprint() != key.Thumbprint() {
			t.Errorf("%s: %+v, %v", algorithm, proof, err)
		}
	}
}

func TestAProofMayBeWrittenInOtherWays(t *testing.T) {
	t.Parallel()
	key := provers()["ES256"]
	for name, change := range map[string]func(header, claims map[string]any){
		"the URL in upper case with its port": func(_, c map[string]any) { c["htu"] = "HTTPS://REMIT.example:443/v1/auth/verify" },
		"the URL with query and fragment":     func(_, c map[string]any) { c["htu"] = proofURL + "?scope=a#b" },
		"another URL of the service":          func(_, c map[string]any) { c["htu"] = "http://127.0.0.1:8080/v1/auth/verify" },
		"further claims":                      func(_, c map[string]any) { c["sub"], c["exp"] = "x", 1 },
		"a further header member":             func(h, _ map[string]any) { h["kid"] = "k" },
		"a jwk with alg, use and kid": func(h, _ map[string]any) {
			h["jwk"] = merged(key.JWK(), map[string]any{"alg": "ES256", "use": "sig", "kid": "k"})
		},
		"an iat with a fraction":  func(_, c map[string]any) { c["iat"] = float64(noon.Unix()) + 0.5 },
		"almost too old":          func(_, c map[string]any) { c["iat"] = noon.Add(-60 * time.Second).Unix() },
		"almost too far ahead":    func(_, c map[string]any) { c["iat"] = noon.Add(30 * time.Second).Unix() },
		"a jti of the most bytes": func(_, c map[string]any) { c["jti"] = strings.Repeat("j", 255) },
		"a nonce of this service": func(_, c map[string]any) { c["nonce"] = proofRing(t).ProofNonce(noon) },
	} {
		header, claims := key.Header(), goodProof().Claims()
		change(header, claims)
		if _, err := proofRing(t).VerifyProof(key.Sign(header, claims), proofUse(key), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnyOtherProofIsRefused(t *testing.T) {
	t.Parallel()
	key := provers()["ES256"]
	for name, test := range map[string]struct {
		change func(header, claims map[string]any)
		want   error
	}{
		"another method":            {func(_, c map[string]any) { c["htm"] = "POST" }, token.ErrClaims},
		"the method in lower case":  {func(_, c map[string]any) { c["htm"] = "get" }, token.ErrClaims},
		"no method":                 {func(_, c map[string]any) { delete(c, "htm") }, token.ErrClaims},
		"another host":              {func(_, c map[string]any) { c["htu"] = "https://other.example/v1/auth/verify" }, token.ErrClaims},
		"another scheme":            {func(_, c map[string]any) { c["htu"] = "http://remit.example/v1/auth/verify" }, token.ErrClaims},
		"another port":              {func(_, c map[string]any) { c["htu"] = "https://remit.example:8443/v1/auth/verify" }, token.ErrClaims},
		"another path":              {func(_, c map[string]any) { c["htu"] = proofURL + "/" }, token.ErrClaims},
		"a path in upper case":      {func(_, c map[string]any) { c["htu"] = "https://remit.example/V1/auth/verify" }, token.ErrClaims},
		"a path alone":              {func(_, c map[string]any) { c["htu"] = "/v1/auth/verify" }, token.ErrClaims},
		"a URL with a user":         {func(_, c map[string]any) { c["htu"] = "https://a@remit.example/v1/auth/verify" }, token.ErrClaims},
		"no URL":                    {func(_, c map[string]any) { delete(c, "htu") }, token.ErrClaims},
		"the hash of another token": {func(_, c map[string]any) { c["ath"] = prover.Hash("another") }, token.ErrClaims},
		"no hash of the token":      {func(_, c map[string]any) { delete(c, "ath") }, token.ErrClaims},
		"61 seconds old":            {func(_, c map[string]any) { c["iat"] = noon.Add(-61 * time.Second).Unix() }, token.ErrExpired},
		"31 seconds ahead":          {func(_, c map[string]any) { c["iat"] = noon.Add(31 * time.Second).Unix() }, token.ErrClaims},
		"no iat":                    {func(_, c map[string]any) { delete(c, "iat") }, token.ErrClaims},
		"an iat that is a text":     {func(_, c map[string]any) { c["iat"] = "1" }, token.ErrMalformed},
		"no jti":                    {func(_, c map[string]any) { delete(c, "jti") }, token.ErrClaims},
		"an empty jti":              {func(_, c map[string]any) { c["jti"] = "" }, token.ErrClaims},
		"a long jti":                {func(_, c map[string]any) { c["jti"] = strings.Repeat("j", 256) }, token.ErrClaims},
		"a made-up nonce":           {func(_, c map[string]any) { c["nonce"] = "abc" }, token.ErrNonce},
		"an empty nonce":            {func(_, c map[string]any) { c["nonce"] = "" }, token.ErrNonce},
		"another service's nonce":   {func(_, c map[string]any) { c["nonce"] = newRefreshKeyring(t, refreshKey(t, 1)).ProofNonce(noon) }, token.ErrNonce},
		"an outdated nonce": {func(_, c map[string]any) {
			c["nonce"] = proofRing(t).ProofNonce(noon.Add(-10*time.Minute - time.Second))
		}, token.ErrNonce},
		"a nonce of the future":       {func(_, c map[string]any) { c["nonce"] = proofRing(t).ProofNonce(noon.Add(5 * time.Minute)) }, token.ErrNonce},
		"the type of an access token": {func(h, _ map[string]any) { h["typ"] = "at+jwt" }, token.ErrMalformed},
		"no type":                     {func(h, _ map[string]any) { delete(h, "typ") }, token.ErrMalformed},
		"alg none":                    {func(h, _ map[string]any) { h["alg"] = "none" }, token.ErrMalformed},
		"alg HS256":                   {func(h, _ map[string]any) { h["alg"] = "HS256" }, token.ErrMalformed},
		"alg RS512":                   {func(h, _ map[string]any) { h["alg"] = "RS512" }, token.ErrMalformed},
		"the alg of another kind":     {func(h, _ map[string]any) { h["alg"] = "ES384" }, token.ErrKey},
		"a critical member":           {func(h, _ map[string]any) { h["crit"] = []string{"b64"} }, token.ErrMalformed},
		"no jwk":                      {func(h, _ map[string]any) { delete(h, "jwk") }, token.ErrKey},
		"a private jwk":               {func(h, _ map[string]any) { h["jwk"] = merged(key.JWK(), map[string]any{"d": "AA"}) }, token.ErrKey},
		"a symmetric jwk":             {func(h, _ map[string]any) { h["jwk"] = map[string]any{"kty": "oct", "k": "AA"} }, token.ErrKey},
		"a set of keys":               {func(h, _ map[string]any) { h["jwk"] = map[string]any{"keys": []any{key.JWK()}} }, token.ErrKey},
		"a key for encryption":        {func(h, _ map[string]any) { h["jwk"] = merged(key.JWK(), map[string]any{"use": "enc"}) }, token.ErrKey},
		"another key":                 {func(h, _ map[string]any) { h["jwk"] = prover.New("ES256").JWK() }, token.ErrKey},
	} {
		header, claims := key.Header(), goodProof().Claims()
		test.change(header, claims)
		if _, err := proofRing(t).VerifyProof(key.Sign(header, claims), proofUse(key), nil); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
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
	header, rest, _ := strings.Cut(good, ".")
	plainHeader, plainClaims := string(decode(t, header)), string(mustEncode(t, goodProof().Claims()))
	for name, text := range map[string]string{
		"nothing":                 "",
		"two parts":               header + "." + strings.Split(rest, ".")[0],
		"four parts":              good + ".",
		"no signature":            strings.Join(strings.Split(good, ".")[:2], ".") + ".",
		"padding":                 good + "=",
		"a line break":            good + "\n",
		"a line break inside":     good[:len(header)+9] + "\n" + good[len(header)+9:],
		"a carriage return":       good[:9] + "\r" + good[9:],
		"a character of base64":   good[:9] + "+" + good[9:],
		"padding inside":          header + "==." + rest,
		"another after a comma":   good + "," + good,
		"beyond 4 KiB":            key.Sign(key.Header(), merged(goodProof().Claims(), map[string]any{"x": strings.Repeat("x", token.MaxProofSize)})),
		"a claim given twice":     key.SignText(plainHeader, strings.Replace(plainClaims, `{`, `{"htm":"GET",`, 1)),
		"a member given twice":    key.SignText(strings.Replace(plainHeader, `{`, `{"typ":"dpop+jwt",`, 1), plainClaims),
		"claims that are no JSON": key.SignText(plainHeader, plainClaims[1:]),
		"an array":                key.SignText(plainHeader, `[]`),
		"bytes behind the claims": key.SignText(plainHeader, plainClaims+" x"),
		"claims in another case":  key.SignText(plainHeader, strings.Replace(plainClaims, `"htm"`, `"HTM"`, 1)),
	} {
		if _, err := proofRing(t).VerifyProof(text, proofUse(key), nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAKnownKeyChangesNoOutcome(t *testing.T) {
	t.Parallel()
	ring, key, other := proofRing(t), provers()["ES256"], provers()["EdDSA"]
	first := must(ring.VerifyProof(key.Prove(goodProof()), proofUse(key), nil))(t)
	again, err := ring.VerifyProof(key.Prove(goodProof()), proofUse(key), first.Key)
	if err != nil || again.Key != first.Key {
		t.Errorf("the same key: %v", err)
	}
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
		proof := must(ring.VerifyProof(key.Prove(p), use, nil))(t)
		return proof.Fingerprint
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

func mustEncode(t testing.TB, value any) []byte {
	t.Helper()
	return must(json.Marshal(value))(t)
}
