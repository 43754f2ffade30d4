package token_test

import (
	"strings"
	"testing"

	"remit/internal/token"
	"remit/test/prover"
)

func TestAPatternIsAValueOrEndsWithAStarAfterASeparator(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"a": true, "repo:acme/app:ref:refs/heads/main": true, "repo:acme/*": true, "repo:acme/app:*": true, "a/*": true, "spiffe://acme.example/*": true,
		strings.Repeat("x", 512): true, "é": true, " ": true,
		"": false, "*": false, "/*": false, ":*": false, "a*": false, "acme-*": false, "*/a": false, "a/*/b": false, "a/**": false, "**": false,
		"a*b": false, "a/* ": false, strings.Repeat("x", 513): false,
	} {
		if err := token.CheckClaimPattern(pattern); (err == nil) != want {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func TestAClaimThatEveryTokenHasTellsNoWorkloadsApart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, pattern string
		want          bool
	}{
		{"sub", "repo:acme/*", true}, {"sub", "repo:*", false}, {"sub", "repo:", true}, {"sub", "project_path:*", false}, {"sub", "system:*", false},
		{"sub", "system:serviceaccount:*", false}, {"sub", "system:serviceaccount:agents:*", true}, {"sub", "https://*", false},
		{"sub", "spiffe://*", false}, {"sub", "spiffe://acme.example/*", false}, {"sub", "spiffe://acme.example/agents/*", true},
		{"sub", "spiffe://acme.example/a", true}, {"sub", "spiffe://acme.example:*", true}, {"repository", "acme/*", true}, {"a", "/*", true},
		{"iss", "https://idp.example", false}, {"aud", "x", false}, {"exp", "1", false}, {"iat", "1", false}, {"nbf", "1", false}, {"jti", "x/*", false},
	} {
		if got := token.TellsApart(test.name, test.pattern); got != test.want {
			t.Errorf("%s %s: %t", test.name, test.pattern, got)
		}
	}
}

func TestClaimsMatchWhenEveryPatternDoes(t *testing.T) {
	t.Parallel()
	type patterns = map[string]string
	a := assertionOf(t, `{"sub":"repo:acme/app:ref:refs/heads/main","repository":"acme\/app","number":7,"yes":true,"list":["acme/app"],
		"object":{"sub":"a"},"none":null,"empty":"","bare":"acme/","star":"acme/*","object.sub":"b"}`)
	for _, test := range []struct {
		name     string
		patterns patterns
		want     bool
	}{
		{"equal", patterns{"sub": "repo:acme/app:ref:refs/heads/main"}, true},
		{"an escaped spelling of the same", patterns{"repository": "acme/app"}, true},
		{"several", patterns{"sub": "repo:acme/*", "repository": "acme/app"}, true},
		{"a prefix that ends with a colon", patterns{"sub": "repo:acme/app:*"}, true},
		{"a name with a dot is a name", patterns{"object.sub": "b"}, true},
		{"no patterns", patterns{}, false},
		{"one of several differs", patterns{"sub": "repo:acme/*", "repository": "acme/other"}, false},
		{"longer than the pattern", patterns{"sub": "repo:acme/app:ref:refs/heads"}, false},
		{"shorter than the pattern", patterns{"sub": "repo:acme/app:ref:refs/heads/main2"}, false},
		{"another prefix", patterns{"sub": "repo:acme/ap:*"}, false},
		{"another case", patterns{"sub": "repo:Acme/*"}, false},
		{"nothing behind the prefix", patterns{"bare": "acme/*"}, false},
		{"a star in the token", patterns{"star": "acme/app"}, false},
		{"absent", patterns{"project_path": "acme/app"}, false},
		{"empty", patterns{"empty": "acme/app"}, false},
		{"an empty pattern", patterns{"empty": ""}, false},
		{"a pattern that is refused", patterns{"sub": "repo*"}, false},
		{"a number", patterns{"number": "7"}, false},
		{"true", patterns{"yes": "true"}, false},
		{"an array", patterns{"list": "acme/app"}, false},
		{"an array, by a prefix", patterns{"list": "acme/*"}, false},
		{"an object", patterns{"object": `{"sub":"a"}`}, false},
		{"null", patterns{"none": "null"}, false},
	} {
		if got := a.Matches(test.patterns); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// assertionOf returns an assertion with these claims.
func assertionOf(t *testing.T, claims string) *token.Assertion {
	t.Helper()
	return must(token.ParseAssertion(prover.New("ES256").SignText(`{"alg":"ES256"}`, claims)))(t)
}
