package access

import (
	"errors"

	"remit/redisstore"
)

// Errors about who calls. All others come from the store, or are about HTTP.
var (
	ErrMissingKey      = errors.New("an API key is required in the header X-API-Key")
	ErrMissingToken    = errors.New("an access token is required in the header Authorization: Bearer")
	ErrMissingEither   = errors.New("an API key in X-API-Key or an access token in Authorization: Bearer is required")
	ErrInvalidKey      = errors.New("the API key is not valid")
	ErrTokenAsKey      = errors.New("an access token was sent in X-API-Key: send it as Authorization: Bearer")
	ErrKeyAsToken      = errors.New("an API key was sent as an access token: send it in X-API-Key")
	ErrInvalidToken    = errors.New("the access token is not valid, has expired or was revoked")
	ErrBoundToken      = errors.New("the access token is bound to a key: it needs the scheme DPoP, with a proof")
	ErrUnboundToken    = errors.New("the access token is bound to no key: it needs the scheme Bearer")
	errOtherKey        = errors.New("the subject token is bound to another key")
	errNoProof         = errors.New("the header DPoP is missing")
	errManyProofs      = errors.New("the header DPoP must be given once")
	errProofHost       = errors.New("the original request's host is neither the issuer's nor one of --proof-hosts")
	errTwoOriginals    = errors.New("the proxy's headers tell of more than one original request")
	ErrDelegatedToken  = errors.New("a delegated token reaches its session alone, not what concerns the whole agent")
	ErrSessionKeyOnly  = errors.New("a session key reaches its session alone: this concerns more")
	ErrForeignToken    = errors.New("the refresh token belongs to another agent")
	ErrNoBootstrap     = errors.New("the bootstrap token is required in the header Authorization: Bearer")
	ErrWrongBootstrap  = errors.New("the bootstrap token is not valid")
	ErrNoNewOrgs       = errors.New("this service does not allow creating organizations")
	ErrUnknownOrg      = redisstore.ErrUnknownOrganization
	ErrStaleKeys       = errors.New("the token may be signed by a key too new to be known here, and the keys cannot be read now")
	ErrNoBootstrapHash = errors.New("the bootstrap token is not loaded yet; nothing was changed")
	ErrNoKeyring       = errors.New("the signing keys are not loaded yet")
)
