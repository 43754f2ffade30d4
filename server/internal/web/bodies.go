package web

import (
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// reserveBody reserves memory for the body behind a header. Without room, a body with a length is not read at all, and a
// chunked one only up to the size that needs no reservation, because it may well be small.
func (f *Front) reserveBody(ctx *fasthttp.RequestCtx) fasthttp.RequestConfig {
	c := conn.Of(ctx.Conn())
	if c == nil {
		return fasthttp.RequestConfig{}
	}
	c.ReleaseReservations() // of the previous request, if this one was pipelined
	length := ctx.Request.Header.ContentLength()
	memory := conn.BodyMemory(length)
	if memory == 0 {
		return fasthttp.RequestConfig{}
	}
	now := time.Now()
	pool, of := f.bodyTenant(ctx, now)
	if c.ReserveBody(pool, memory, now, of) {
		return fasthttp.RequestConfig{}
	}
	if length == conn.Chunked {
		return fasthttp.RequestConfig{MaxRequestBodySize: conn.SmallBody}
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: 1} // see AnswerUnreadable
}

// bodyTenant returns the pool and the tenant that a body counts for. It does not ask Redis.
func (f *Front) bodyTenant(ctx *fasthttp.RequestCtx, now time.Time) (*conn.Pool, conn.Tenant) {
	if organization, verified := f.Hooks.Verified(ctx, now); verified {
		return f.Bodies.Verified, conn.Tenant{Organization: organization}
	}
	return f.Bodies.Unverified, conn.Tenant{Address: f.ClientAddress(ctx)}
}

// ContextOf returns the context that contains a header: fasthttp passes HeaderReceived the header alone, without its
// connection. Every header that its server reads is part of a RequestCtx.
func ContextOf(header *fasthttp.RequestHeader) *fasthttp.RequestCtx {
	const offset = unsafe.Offsetof(fasthttp.RequestCtx{}.Request) + unsafe.Offsetof(fasthttp.Request{}.Header)
	return (*fasthttp.RequestCtx)(unsafe.Add(unsafe.Pointer(header), -int(offset)))
}
