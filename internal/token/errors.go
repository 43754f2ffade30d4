package token

import (
	"errors"
	"fmt"
)

// Sentinel errors. Every rejection of a credential wraps one of them. None reveals which bytes were wrong.
var (
	// ErrMalformed: the text is not a credential of this kind.
	ErrMalformed = errors.New("malformed credential")
	// ErrUnknownKey: the credential names a key that is not in this keyring.
	ErrUnknownKey = errors.New("unknown key")
	// ErrSignature: the signature is wrong.
	ErrSignature = errors.New("wrong signature")
	// ErrClaims: the signature is right, but this service does not issue such claims.
	ErrClaims = errors.New("unexpected claims")
	// ErrExpired: the token was valid but has expired.
	ErrExpired = errors.New("expired")
	// ErrKey: a signing, token or key encryption key is unusable.
	ErrKey = errors.New("unusable key")
	// ErrAccessSize: an access token with these scopes, this audience and a signature of this length would be too long. It is
	// an ErrKey too: a shorter key may help.
	ErrAccessSize = fmt.Errorf("%w: an access token would be longer than %d bytes", ErrKey, MaxAccessSize)
)
