package token

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// MaxActors bounds how many agents stand one behind the other in a delegated token.
const MaxActors = 8

// Access is the content of an access token.
type Access struct {
	Agent        uuid.UUID // who acts, or for a delegated token: on whose behalf
	Organization uuid.UUID
	Family       uuid.UUID // the refresh token family it was issued with; of its own when it came without a refresh token
	Scopes       []string
	Issued       time.Time // to the second

	Audience   []string  // its recipients (RFC 9068 §2.2), at least one
	Client     uuid.UUID // the agent that asked for it
	Thumbprint string    // of the key that it is bound to (RFC 9449 §6.1, RFC 7638: 43 characters); "" when it is not bound

	// Only a delegated token (RFC 8693) has these three.
	Session  uuid.UUID     // the only session it may act on
	Actors   []Actor       // who acts, first who asked for it: at most MaxActors
	Lifetime time.Duration // in whole seconds, below AccessLifetime; 0 for AccessLifetime
}

// Actor is an agent that acts with a delegated token.
type Actor struct {
	Agent  uuid.UUID
	Family uuid.UUID // of the token with which it asked: what revokes that one revokes the delegated one
}

// Delegated reports whether the token came from a token exchange.
func (a Access) Delegated() bool { return a.Session != uuid.Nil }

// Expires returns when the token expires.
func (a Access) Expires() time.Time { return a.Issued.Add(a.lifetime()) }

func (a Access) lifetime() time.Duration {
	if a.Lifetime == 0 {
		return AccessLifetime
	}
	return a.Lifetime
}

// check returns ErrClaims for fields that no token of ours has together.
func (a Access) check() error {
	client := a.Agent
	if len(a.Actors) > 0 {
		client = a.Actors[0].Agent
	}
	switch {
	case len(a.Audience) == 0, slices.Contains(a.Audience, ""), a.Client != client,
		a.Thumbprint != "" && !isThumbprint(a.Thumbprint),
		a.Delegated() != (len(a.Actors) > 0), len(a.Actors) > MaxActors, slices.ContainsFunc(a.Actors, Actor.isIncomplete),
		a.Lifetime != 0 && (!a.Delegated() || a.Lifetime < time.Second || a.Lifetime >= AccessLifetime || a.Lifetime%time.Second != 0):
		return ErrClaims
	}
	return nil
}

func (a Actor) isIncomplete() bool { return a.Agent == uuid.Nil || a.Family == uuid.Nil }

// isThumbprint reports whether the text has the form of a SHA-256 in base64url.
func isThumbprint(text string) bool {
	for i := range len(text) {
		if !isBase64URL(text[i]) {
			return false
		}
	}
	return len(text) == 43
}
