package web

import "strconv"

const (
	maxScopes      = 64
	maxScopesChars = 600 // together, so that an access token stays below 3 KiB
)

// Scopes validates a list of scopes; RFC 6749 §3.3 defines their characters.
func (v *Validation) Scopes(scopes []string) {
	if len(scopes) > maxScopes {
		v.Add("scopes", "must be at most 64")
		return
	}
	seen, total := map[string]bool{}, 0
	for i, scope := range scopes {
		field := "scopes[" + strconv.Itoa(i) + "]"
		v.Require(IsScope(scope), field, "must be one or more visible ASCII characters without \" and \\")
		v.Require(!seen[scope], field, "is given twice")
		seen[scope] = true
		total += len(scope)
	}
	v.Require(total <= maxScopesChars, "scopes", "must have at most 600 characters together")
}

func IsScope(scope string) bool {
	for i := range len(scope) {
		if c := scope[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return scope != ""
}

// ScopeError refuses a caller whose access token lacks the scope.
type ScopeError struct{ Scope string }

func (e *ScopeError) Error() string { return "the scope " + e.Scope + " is needed" }

func (e *ScopeError) Problem() Problem {
	return NeedsScope(e.Scope, "the access token does not hold the scope")
}

func NeedsScope(scope, detail string) Problem {
	p := NewProblem(403, "insufficient_scope", detail)
	p.RequiredScope = scope
	return p
}
