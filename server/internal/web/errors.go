package web

import "errors"

// Errors about HTTP itself.
var (
	ErrNoRoute         = errors.New("there is nothing at this path")
	ErrSlashAtEnd      = errors.New("there is nothing at this path: send it without the slash at the end")
	ErrMethod          = errors.New("this path does not support this method")
	ErrMediaType       = errors.New("the body must be application/json, without a Content-Encoding")
	ErrBodyTooLarge    = errors.New("the body is larger than 256 KiB")
	ErrHeadersTooLarge = errors.New("the headers are larger than 16 KiB")
	ErrSlowRequest     = errors.New("the request did not arrive in time")
	ErrExpectation     = errors.New("the only supported expectation is 100-continue")
	ErrUnreadable      = errors.New("the request is not well-formed HTTP")
	ErrRateLimited     = errors.New("too many requests of this kind came from your address")
	ErrPlainHTTP       = errors.New("this port speaks TLS: use https://")
	ErrPanic           = errors.New("internal error")
	ErrUnansweredWrite = errors.New("too many large responses are waiting for clients to read them; the change may have happened")
)

// RateLimited is ErrRateLimited with the seconds after which the client may retry.
type RateLimited struct{ RetryAfter int }

func (e *RateLimited) Error() string { return ErrRateLimited.Error() }

func (e *RateLimited) Unwrap() error { return ErrRateLimited }

const OverloadedDetail = "the service is overloaded; nothing was changed"
