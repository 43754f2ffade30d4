package server

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/conn"
	"remit/server/internal/web"
)

// A client that does not read keeps its response in memory until the write times out. So the bytes of large responses are
// reserved until they are written, with a bound for each organization and client address.
const (
	smallAnswer = 4 << 10 // bytes; needs no reservation

	// A list reserves this much for each item before it reads them from Redis: nearly the most that an item takes. The size
	// of the actual response then replaces it.
	agentBytes   = web.MaxMetadata + 2<<10
	summaryBytes = 512
)

// newPageMemory returns memory for the pages of a stream that the request asks for.
func (f *front) newPageMemory(ctx *fasthttp.RequestCtx) *conn.PageMemory {
	cut := func() {}
	if c := conn.Of(ctx.Conn()); c != nil {
		cut = c.Abort
	}
	return conn.NewPageMemory(f.unwritten, cut, f.answerTenants(ctx))
}

// ReserveAnswer reserves memory for a response of this size, in place of an earlier reservation.
func (f *front) reserveAnswer(ctx *fasthttp.RequestCtx, bytes int) error {
	c := conn.Of(ctx.Conn())
	if c == nil {
		return nil
	}
	return c.ReserveAnswer(f.unwritten, bytes, func() []conn.Tenant { return f.answerTenants(ctx) })
}

func (f *front) answerTenants(ctx *fasthttp.RequestCtx) []conn.Tenant {
	address := conn.Tenant{Address: f.clientAddress(ctx)}
	organization := web.InfoOf(ctx).Organization
	if organization == uuid.Nil || !f.isVerified(ctx, organization) {
		return []conn.Tenant{address}
	}
	return []conn.Tenant{{Organization: organization}, address}
}

// isVerified reports whether the request's credential is known to be the organization's. An API key proves nothing until
// this instance has used it successfully; an access token was verified before its organization was recorded.
func (f *front) isVerified(ctx *fasthttp.RequestCtx, organization uuid.UUID) bool {
	key := ctx.Request.Header.Peek(web.HeaderAPIKey)
	return len(key) == 0 || f.hooks.hasVerified(organization, string(key))
}

// ReleaseAnswer releases the reservation of a response that turned out small.
func releaseAnswer(ctx *fasthttp.RequestCtx) {
	conn.Of(ctx.Conn()).ReleaseAnswer()
}

// reserveWritten reserves memory for the response that the handler has written, or refuses it. A write that was carried out
// stays so: its client is told that the outcome is unknown.
func (f *front) reserveWritten(ctx *fasthttp.RequestCtx) error {
	if ctx.Response.IsBodyStream() {
		return nil
	}
	size := len(ctx.Response.Body())
	if size <= smallAnswer || web.InfoOf(ctx).Shared {
		releaseAnswer(ctx)
		return nil
	}
	err := f.reserveAnswer(ctx, size)
	if err != nil && !ctx.IsGet() && !ctx.IsHead() {
		return web.ErrUnansweredWrite
	}
	return err
}
