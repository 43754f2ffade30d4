package server

import "math/bits"

// fasthttp allocates a whole body once it has read its length, and a whole chunk once it has read the chunk's size. A
// client that announces 256 KiB and sends ten bytes would take 256 KiB until the read times out. So bytes are reserved
// before the body is read, and released when the request is answered. Callers whose credential verified have a pool of
// their own, shared by organization. All others share one by client address.
const (
	smallBody = 4 << 10 // bytes; needs no place: nearly all requests are smaller, and must not wait for a lock

	maxVerifiedBodies   = 128 << 20 // bytes
	maxUnverifiedBodies = 64 << 20
)

type bodies struct {
	verified, unverified *pool
}

func newBodies() bodies {
	return bodies{
		verified:   newPool(maxVerifiedBodies, errManyBodies, errOwnBodies),
		unverified: newPool(maxUnverifiedBodies, errManyBodies, errOwnBodies),
	}
}

// bodyMemory returns how much fasthttp allocates for a body, or 0 when that needs no place. A chunked body may grow to the
// largest size in steps, each of which copies what has arrived.
func bodyMemory(contentLength int) int {
	switch {
	case contentLength == chunked:
		return 2 * maxBody
	case contentLength <= smallBody, contentLength > maxBody: // larger ones are refused unread
		return 0
	}
	return 1 << bits.Len(uint(contentLength-1))
}

const chunked = -1 // fasthttp's length of a chunked body
