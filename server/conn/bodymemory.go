package conn

import (
	"errors"
	"math/bits"
)

// fasthttp allocates a whole body once it knows its length, and a whole chunk once it knows the chunk's size. A client that
// announces 256 KiB and sends ten bytes would occupy 256 KiB until the read times out. So memory is reserved before a body
// is read, and released when the request is answered. Callers with a verified credential share one pool by organization.
// All others share a second one by client address.
const (
	SmallBody = 4 << 10 // bytes; needs no reservation, so that most requests take no lock

	maxVerifiedBodies   = 128 << 20 // bytes
	maxUnverifiedBodies = 64 << 20

	maxUnwritten = 128 << 20
)

// What the pools refuse with: when one is full, and when a tenant would have more than half of it.
var (
	ErrManyBodies    = errors.New("too many large request bodies are arriving; nothing was changed")
	ErrOwnBodies     = errors.New("too many large request bodies of your organization or address are arriving; nothing was changed")
	ErrManyUnwritten = errors.New("too many large responses are waiting for clients to read them")
	ErrOwnUnwritten  = errors.New("too many large responses are waiting for clients of your organization or address to read them")
)

// Bodies are the pools for request bodies.
type Bodies struct {
	Verified, Unverified *Pool
}

// NewBodies returns the pools for request bodies.
func NewBodies() Bodies {
	return Bodies{
		Verified:   NewPool(maxVerifiedBodies, ErrManyBodies, ErrOwnBodies),
		Unverified: NewPool(maxUnverifiedBodies, ErrManyBodies, ErrOwnBodies),
	}
}

// NewUnwritten returns the pool for large responses that are being written.
func NewUnwritten() *Pool {
	return NewPool(maxUnwritten, ErrManyUnwritten, ErrOwnUnwritten)
}

// BodyMemory returns how many bytes fasthttp allocates for a body, 0 when it needs no reservation. A chunked body grows in
// steps, and each step copies what has arrived, so it may take twice the largest size.
func BodyMemory(contentLength int) int {
	switch {
	case contentLength == Chunked:
		return 2 * MaxBody
	case contentLength <= SmallBody, contentLength > MaxBody: // larger ones are refused unread
		return 0
	}
	return 1 << bits.Len(uint(contentLength-1))
}

const Chunked = -1 // fasthttp's content length of a chunked body
