package redisstore

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Authorize is Charge, and returns which scopes the session's agent has left; for a session key those of the session, because the key
// itself names none.
func (s *Store) Authorize(ctx context.Context, c Caller, session uuid.UUID, charge Charge) (Usage, ScopesLeft, error) {
	charge.tellsScopes = c.Token.IsSessionKey()
	r, err := s.charge(ctx, c, session, charge)
	if err != nil {
		return Usage{}, ScopesLeft{}, err
	}
	usage, left := usageAt(r, 0), scopesLeftAt(r, usageScopesLeft)
	return usage, left, r.Err
}

// VerifyProof is VerifyToken for a token that is bound to a key, with a proof of that key, which it uses up. Errors:
// ErrInvalidToken, *AgentSuspendedError, ErrProofUsed, ErrManyProofs.
func (s *Store) VerifyProof(ctx context.Context, t AccessToken, p Proof) (ScopesLeft, error) {
	r, err := s.proveToken(ctx, verifyProof, t, p)
	if err != nil {
		return ScopesLeft{}, err
	}
	return scopesLeftAt(r, 0), r.Err
}

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

// All returns all of them, separated by spaces; "" while they were not narrowed.
func (l ScopesLeft) All() string { return strings.TrimPrefix(l.text, "=") }

// May says whether an agent that had the scope still has it.
func (l ScopesLeft) May(scope string) bool { return len(l.Of([]string{scope})) == 1 }
