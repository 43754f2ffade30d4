package server

import (
	"errors"

	"remit/redisstore"
)

// Errors of this package. All others come from the store.
var (
	errNoRoute         = errors.New("there is nothing at this path")
	errSlashAtEnd      = errors.New("there is nothing at this path: send it without the slash at the end")
	errMethod          = errors.New("this path does not support this method")
	errMediaType       = errors.New("the body must be application/json, without a Content-Encoding")
	errMissingKey      = errors.New("an API key is required in the header X-API-Key")
	errMissingToken    = errors.New("an access token is required in the header Authorization: Bearer")
	errMissingEither   = errors.New("an API key in X-API-Key or an access token in Authorization: Bearer is required")
	errInvalidKey      = errors.New("the API key is not valid")
	errTokenAsKey      = errors.New("an access token was sent in X-API-Key: send it as Authorization: Bearer")
	errKeyAsToken      = errors.New("an API key was sent as an access token: send it in X-API-Key")
	errInvalidToken    = errors.New("the access token is not valid, has expired or was revoked")
	errBoundToken      = errors.New("the access token is bound to a key: it needs the scheme DPoP, with a proof")
	errUnboundToken    = errors.New("the access token is bound to no key: it needs the scheme Bearer")
	errOtherKey        = errors.New("the subject token is bound to another key")
	errNoProof         = errors.New("the header DPoP is missing")
	errManyProofs      = errors.New("the header DPoP must be given once")
	errProofHost       = errors.New("the original request's host is neither the issuer's nor one of --proof-hosts")
	errTwoOriginals    = errors.New("the proxy's headers tell of more than one original request")
	errDelegatedToken  = errors.New("a delegated token reaches its session alone, not what concerns the whole agent")
	errForeignToken    = errors.New("the refresh token belongs to another agent")
	errNoBootstrap     = errors.New("the bootstrap token is required in the header Authorization: Bearer")
	errWrongBootstrap  = errors.New("the bootstrap token is not valid")
	errNoNewOrgs       = errors.New("this service does not allow creating organizations")
	errUnknownOrg      = redisstore.ErrUnknownOrganization
	errBodyTooLarge    = errors.New("the body is larger than 256 KiB")
	errHeadersTooLarge = errors.New("the headers are larger than 16 KiB")
	errSlowRequest     = errors.New("the request did not arrive in time")
	errExpectation     = errors.New("the only supported expectation is 100-continue")
	errUnreadable      = errors.New("the request is not well-formed HTTP")
	errStaleKeys       = errors.New("the token may be signed by a key too new to be known here, and the keys cannot be read now")
	errNoBootstrapHash = errors.New("the bootstrap token is not loaded yet; nothing was changed")
	errNoKeyring       = errors.New("the signing keys are not loaded yet")
	errRateLimited     = errors.New("too many requests of this kind came from your address")
	errPlainHTTP       = errors.New("this port speaks TLS: use https://")
	errPanic           = errors.New("internal error")
	errUnansweredWrite = errors.New("too many large responses are waiting for clients to read them; the change may have happened")
)

// rateLimited is errRateLimited with the seconds after which the client may retry.
type rateLimited struct{ retryAfter int }

func (e *rateLimited) Error() string { return errRateLimited.Error() }

func (e *rateLimited) Unwrap() error { return errRateLimited }

const overloadedDetail = "the service is overloaded; nothing was changed"
