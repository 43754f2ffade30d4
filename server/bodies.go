package server

import (
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"
)

// admitBody reserves memory for the body behind the header. Without room a body with a length is not read at all, and of
// a chunked one no more than needs no place: its client may well send a small one.
func (s *Server) admitBody(ctx *fasthttp.RequestCtx) fasthttp.RequestConfig {
	c := connectionOf(ctx.Conn())
	if c == nil {
		return fasthttp.RequestConfig{}
	}
	c.releasePlaces() // of a request before, if this one was pipelined
	length := ctx.Request.Header.ContentLength()
	memory := bodyMemory(length)
	if memory == 0 {
		return fasthttp.RequestConfig{}
	}
	now := time.Now()
	pool, of := s.bodyHolder(ctx, now)
	one, err := pool.reserve(memory, now, c.stopReading, of)
	if err == nil {
		c.body.Store(one)
		return fasthttp.RequestConfig{}
	}
	c.noRoom = err
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
