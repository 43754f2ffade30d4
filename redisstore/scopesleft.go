package redisstore

import (
	"slices"
	"strings"
)

// ScopesLeft are the scopes that an agent has left after they were narrowed; the zero value while they were not. Tokens and
// sessions name those that it had.
type ScopesLeft struct{ text string } // as block/scopes_left.lua returns it

// scopesLeftAt reads a ScopesLeft that may be missing.
func scopesLeftAt(r *reply, i int) ScopesLeft {
	if !r.Has(i) {
		return ScopesLeft{}
	}
	return ScopesLeft{r.Optional(i)}
}

// Narrowed says whether the agent's scopes were ever narrowed.
func (l ScopesLeft) Narrowed() bool { return l.text != "" }

// Of returns those of the scopes that the agent still has. It may return scopes itself.
func (l ScopesLeft) Of(scopes []string) []string {
	left, narrowed := strings.CutPrefix(l.text, "=")
	if !narrowed {
		return scopes
	}
	held := strings.Fields(left)
	return slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool { return !slices.Contains(held, scope) })
}

// May says whether an agent that had the scope still has it.
func (l ScopesLeft) May(scope string) bool { return len(l.Of([]string{scope})) == 1 }
