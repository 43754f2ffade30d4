package server

import "strconv"

const (
	maxScopes      = 64
	maxScopesChars = 600 // together, so that an access token stays below 3 KiB
)

// scopes validates a list of scopes; RFC 6749 §3.3 defines their characters.
func (v *validation) scopes(scopes []string) {
	if len(scopes) > maxScopes {
		v.add("scopes", "must be at most 64")
		return
	}
	seen, total := map[string]bool{}, 0
	for i, scope := range scopes {
		field := "scopes[" + strconv.Itoa(i) + "]"
		v.require(isScope(scope), field, "must be one or more visible ASCII characters without \" and \\")
		v.require(!seen[scope], field, "is given twice")
		seen[scope] = true
		total += len(scope)
	}
	v.require(total <= maxScopesChars, "scopes", "must have at most 600 characters together")
}

func isScope(scope string) bool {
	for i := range len(scope) {
		if c := scope[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return scope != ""
}

// scopeError refuses a caller whose access token lacks the scope.
type scopeError struct{ scope string }

func (e *scopeError) Error() string { return "the scope " + e.scope + " is needed" }

func (e *scopeError) Problem() problem {
	return needsScope(e.scope, "the access token does not hold the scope")
}

func needsScope(scope, detail string) problem {
	p := newProblem(403, "insufficient_scope", detail)
	p.RequiredScope = scope
	return p
}
