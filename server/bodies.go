package server

import (
	"math/bits"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"
)

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

// admitBody reserves memory for the body behind the header. Without room a body with a length is not read at all, and of
// a chunked one no more than needs no place: its client may well send a small one.
func (s *Server) admitBody(ctx *fasthttp.RequestCtx) fasthttp.RequestConfig {
	conn := connectionOf(ctx.Conn())
	if conn == nil {
		return fasthttp.RequestConfig{}
	}
	conn.releasePlaces() // of a request before, if this one was pipelined
	length := ctx.Request.Header.ContentLength()
	memory := bodyMemory(length)
	if memory == 0 {
		return fasthttp.RequestConfig{}
	}
	now := time.Now()
	pool, of := s.bodyHolder(ctx, now)
	one, err := pool.reserve(memory, now, conn.stopReading, of)
	if err == nil {
		conn.body.Store(one)
		return fasthttp.RequestConfig{}
	}
	conn.noRoom = err
	if length == chunked {
		return fasthttp.RequestConfig{MaxRequestBodySize: smallBody}
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: 1} // see answerUnreadable
}

// bodyHolder returns whom the body counts for. Redis is not asked: an API key counts as verified once this instance has
// seen it to be good, an access token by its signature.
func (s *Server) bodyHolder(ctx *fasthttp.RequestCtx, now time.Time) (*pool, account) {
	if key, err := organizationKey(ctx); err == nil && s.store.HasSeen(key) {
		return s.bodies.verified, account{organization: key.Organization}
	}
	if given, found := bearer(ctx); found {
		if v := s.verifier.Load(); v != nil {
			if access, err := v.access(given, now); err == nil {
				return s.bodies.verified, account{organization: access.Organization}
			}
		}
	}
	return s.bodies.unverified, account{address: s.clientAddress(ctx)}
}

// contextOf returns the context that a header is part of: fasthttp shows HeaderReceived the header alone, without its
// connection. Every header that its server reads is in a RequestCtx.
func contextOf(header *fasthttp.RequestHeader) *fasthttp.RequestCtx {
	const offset = unsafe.Offsetof(fasthttp.RequestCtx{}.Request) + unsafe.Offsetof(fasthttp.Request{}.Header)
	return (*fasthttp.RequestCtx)(unsafe.Add(unsafe.Pointer(header), -int(offset)))
}
