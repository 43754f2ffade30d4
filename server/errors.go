package server

import (
	"errors"

	"remit/redisstore"
)

// What the server refuses by itself; everything else it refuses comes from the store.
var (
	errNoRoute         = errors.New("there is nothing at this path")
	errMethod          = errors.New("this path does not answer to this method")
	errMediaType       = errors.New("the body must be application/json, without a Content-Encoding")
	errMissingKey      = errors.New("this needs an API key in the header X-API-Key")
	errMissingToken    = errors.New("this needs an access token in the header Authorization: Bearer")
	errMissingEither   = errors.New("this needs an API key in X-API-Key or an access token in Authorization: Bearer")
	errInvalidKey      = errors.New("the API key is not valid")
	errInvalidToken    = errors.New("the access token is not valid, has expired or was revoked")
	errForeignToken    = errors.New("the refresh token belongs to another agent")
	errNoBootstrap     = errors.New("this needs the bootstrap token in the header Authorization: Bearer")
	errWrongBootstrap  = errors.New("the bootstrap token is not valid")
	errNoNewOrgs       = errors.New("organizations are not created here")
	errUnknownOrg      = redisstore.ErrUnknownOrganization
	errBodyTooLarge    = errors.New("the body is larger than 256 KiB")
	errHeadersTooLarge = errors.New("the headers are larger than 16 KiB")
	errSlowRequest     = errors.New("the request did not arrive in time")
	errExpectation     = errors.New("of the expectations only 100-continue is met")
	errUnreadable      = errors.New("the request is not well-formed HTTP")
	errStaleKeys       = errors.New("the token may be signed by a key that is too new to be known here; the keys cannot be read now")
	errNoBootstrapHash = errors.New("the bootstrap token is not known yet; nothing was changed")
	errNoKeyring       = errors.New("the signing keys are not loaded yet")
	errRateLimited     = errors.New("too many requests of this kind came from your address")
	errPlainHTTP       = errors.New("this port speaks TLS: ask it by https://")
	errPanic           = errors.New("internal error")
	errManyWaiting     = errors.New("too many requests wait for events here")
	errManyBodies      = errors.New("too many large bodies are arriving; nothing was changed")
	errOwnBodies       = errors.New("too many large bodies of your organization or address are arriving; nothing was changed")
	errManyUnwritten   = errors.New("too many large answers wait for their clients to read them")
	errOwnUnwritten    = errors.New("too many large answers wait for clients of your organization or address to read them")
	errUnansweredWrite = errors.New("too many large answers wait for clients to read them; the change may have happened")
	errOwnWaiting      = errors.New("too many requests of your organization wait for events here")
	errAddressWaiting  = errors.New("too many requests from your address wait for events here")
)

// rateLimited is errRateLimited with the seconds after which the client may try again.
type rateLimited struct{ retryAfter int }

func (e *rateLimited) Error() string { return errRateLimited.Error() }

func (e *rateLimited) Unwrap() error { return errRateLimited }

const overloadedDetail = "more is asked than can be done now; nothing was changed"
