package token

import "errors"

// What this package refuses. Every refusal of a credential wraps one of these; none says which bytes were wrong.
var (
	// ErrMalformed: the text is not a credential of this kind. Telling needs no store.
	ErrMalformed = errors.New("malformed credential")
	// ErrUnknownKey: the credential names a key that this keyring does not hold.
	ErrUnknownKey = errors.New("unknown key")
	// ErrSignature: the signature does not fit.
	ErrSignature = errors.New("wrong signature")
	// ErrClaims: the signature fits, but the claims are not those that this service issues.
	ErrClaims = errors.New("unexpected claims")
	// ErrExpired: the token was good until its time ran out.
	ErrExpired = errors.New("expired")
	// ErrKey: a signing or token key cannot be used.
	ErrKey = errors.New("unusable key")
)
