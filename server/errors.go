package server

import "errors"

// Errors about HTTP itself.
var (
	errNoRoute         = errors.New("there is nothing at this path")
	errSlashAtEnd      = errors.New("there is nothing at this path: send it without the slash at the end")
	errMethod          = errors.New("this path does not support this method")
	errMediaType       = errors.New("the body must be application/json, without a Content-Encoding")
	errBodyTooLarge    = errors.New("the body is larger than 256 KiB")
	errHeadersTooLarge = errors.New("the headers are larger than 16 KiB")
	errSlowRequest     = errors.New("the request did not arrive in time")
	errExpectation     = errors.New("the only supported expectation is 100-continue")
	errUnreadable      = errors.New("the request is not well-formed HTTP")
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
