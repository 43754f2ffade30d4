package token

import (
	"errors"
	"strings"
)

const (
	// MaxClaimName is the length of the longest name of a claim in a rule, in bytes.
	MaxClaimName = 100
	// MaxClaimPattern is the length of the longest pattern of a claim in a rule, in bytes.
	MaxClaimPattern = 512

	wildcard = "*"
)

// commonClaims are claims that tell no workload from another: every token of the issuer that is accepted has the right ones.
var commonClaims = map[string]bool{"iss": true, "aud": true, "exp": true, "iat": true, "nbf": true, "jti": true}

// commonBeginnings are those of every subject of a platform: of Kubernetes, CI services, SPIFFE, and of all URLs.
var commonBeginnings = map[string]bool{
	"system:": true, "system:serviceaccount:": true, "repo:": true, "project_path:": true,
	"spiffe:": true, "spiffe:/": true, "spiffe://": true, "https:": true, "https:/": true, "https://": true,
}

// TellsApart reports whether a claim of this name and pattern may tell one workload of an issuer from another. A SPIFFE ID of a trust
// domain does not: that is the issuer.
func TellsApart(name, pattern string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, wildcard)
	if commonClaims[name] || !isPrefix {
		return !commonClaims[name]
	}
	domain, isDomain := strings.CutSuffix(prefix, "/")
	return !commonBeginnings[prefix] && !(isDomain && domain != "" && trustDomain(prefix+"x") == domain)
}

// CheckClaimPattern returns why a text cannot be the pattern of a claim, in words that follow its name; nil if it can. A pattern
// is the value itself, or ends with * after a / or : that something precedes: then it is the beginning of the value.
func CheckClaimPattern(pattern string) error {
	switch prefix, isPrefix := strings.CutSuffix(pattern, wildcard); {
	case pattern == "" || len(pattern) > MaxClaimPattern:
		return errors.New("must have 1 to 512 bytes")
	case strings.Contains(prefix, wildcard):
		return errors.New("must have no * but one at its end")
	case isPrefix && (len(prefix) < 2 || !strings.HasSuffix(prefix, "/") && !strings.HasSuffix(prefix, ":")):
		return errors.New("must have a / or : before the *, and something before that")
	}
	return nil
}

// Matches reports whether the assertion's claims match every pattern. Only a string does: a number, an array or an object has several
// spellings. A pattern that CheckClaimPattern refuses matches nothing, and neither do no patterns.
func (a *Assertion) Matches(patterns map[string]string) bool {
	for name, pattern := range patterns {
		value, isString := a.Text(name)
		if !isString || CheckClaimPattern(pattern) != nil || !matchClaim(pattern, value) {
			return false
		}
	}
	return len(patterns) > 0
}

func matchClaim(pattern, value string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, wildcard)
	if !isPrefix {
		return value == pattern
	}
	return len(value) > len(prefix) && strings.HasPrefix(value, prefix)
}
