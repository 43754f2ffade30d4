package server

import (
	"errors"
	"math/bits"
)

// fasthttp allocates a whole body once it knows its length, and a whole chunk once it knows the chunk's size. A client that
// announces 256 KiB and sends ten bytes would occupy 256 KiB until the read times out. So memory is reserved before a body
// is read, and released when the request is answered. Callers with a verified credential share one pool by organization.
// All others share a second one by client address.
const (
	smallBody = 4 << 10 // bytes; needs no reservation, so that most requests take no lock

	maxVerifiedBodies   = 128 << 20 // bytes
	maxUnverifiedBodies = 64 << 20

	maxUnwritten = 128 << 20
)

// What the pools refuse with: when one is full, and when a tenant would have more than half of it.
var (
	errManyBodies    = errors.New("too many large request bodies are arriving; nothing was changed")
	errOwnBodies     = errors.New("too many large request bodies of your organization or address are arriving; nothing was changed")
	errManyUnwritten = errors.New("too many large responses are waiting for clients to read them")
	errOwnUnwritten  = errors.New("too many large responses are waiting for clients of your organization or address to read them")
)

// bodies are the pools for request bodies.
type bodies struct {
	verified, unverified *memoryPool
}

func newBodies() bodies {
	return bodies{
		verified:   newMemoryPool(maxVerifiedBodies, errManyBodies, errOwnBodies),
		unverified: newMemoryPool(maxUnverifiedBodies, errManyBodies, errOwnBodies),
	}
}

// newUnwritten returns the pool for large responses that are being written.
func newUnwritten() *memoryPool {
	return newMemoryPool(maxUnwritten, errManyUnwritten, errOwnUnwritten)
}

// bodyMemory returns how many bytes fasthttp allocates for a body, 0 when it needs no reservation. A chunked body grows in
// steps, and each step copies what has arrived, so it may take twice the largest size.
func bodyMemory(contentLength int) int {
	switch {
	case contentLength == chunked:
		return 2 * maxBody
	case contentLength <= smallBody, contentLength > maxBody: // larger ones are refused unread
		return 0
	}
	return 1 << bits.Len(uint(contentLength-1))
}

const chunked = -1 // fasthttp's content length of a chunked body
