package token_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"remit/token"
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

func TestClaimsMatchWhenEveryPatternDoes(t *testing.T) {
	t.Parallel()
	type patterns = map[string]string
	claims := map[string]jsontext.Value{
		"sub": jsontext.Value(`"repo:acme/app:ref:refs/heads/main"`), "repository": jsontext.Value(`"acme\/app"`), "number": jsontext.Value(`7`),
		"yes": jsontext.Value(`true`), "list": jsontext.Value(`["acme/app"]`), "object": jsontext.Value(`{"sub":"a"}`), "none": jsontext.Value(`null`),
		"empty": jsontext.Value(`""`), "bare": jsontext.Value(`"acme/"`), "star": jsontext.Value(`"acme/*"`), "object.sub": jsontext.Value(`"b"`),
	}
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
		{"an object", patterns{"object": `{"sub":"a"}`}, false},
		{"null", patterns{"none": "null"}, false},
	} {
		if got := token.MatchClaims(test.patterns, claims); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
