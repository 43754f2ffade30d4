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
	for want, all := range map[bool][]patterns{
		true: {
			{"sub": "repo:acme/app:ref:refs/heads/main"}, {"repository": "acme/app"}, {"sub": "repo:acme/*", "repository": "acme/app"},
			{"sub": "repo:acme/app:*"}, {"object.sub": "b"},
		},
		false: {
			{}, {"sub": "repo:acme/*", "repository": "acme/other"}, {"sub": "repo:acme/app:ref:refs/heads"}, {"sub": "repo:acme/app:ref:refs/heads/main2"},
			{"sub": "repo:acme/ap:*"}, {"sub": "repo:Acme/*"}, {"bare": "acme/*"}, {"star": "acme/app"}, {"project_path": "acme/app"},
			{"empty": "acme/app"}, {"empty": ""}, {"sub": "repo*"}, {"number": "7"}, {"yes": "true"}, {"list": "acme/app"}, {"list": "acme/*"},
			{"object": `{"sub":"a"}`}, {"none": "null"},
		},
	} {
		for _, of := range all {
			if got := a.Matches(of); got != want {
				t.Errorf("%v: %t", of, got)
			}
		}
	}
}

func assertionOf(t *testing.T, claims string) *token.Assertion {
	t.Helper()
	return must(token.ParseAssertion(prover.New("ES256").SignText(`{"alg":"ES256"}`, claims)))(t)
}
