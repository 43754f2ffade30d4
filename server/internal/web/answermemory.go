package web

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// A client that does not read keeps its response in memory until the write times out. So the bytes of large responses are
// reserved until they are written, with a bound for each organization and client address.
const (
	SmallAnswer = 4 << 10 // bytes; needs no reservation

	// A list reserves this much for each item before it reads them from Redis: nearly the most that an item takes. The size
	// of the actual response then replaces it.
	AgentBytes   = MaxMetadata + 2<<10
	SummaryBytes = 512
)

// NewPageMemory returns memory for the pages of a stream that the request asks for.
func (f *Front) NewPageMemory(ctx *fasthttp.RequestCtx) *conn.PageMemory {
	cut := func() {}
	if c := conn.Of(ctx.Conn()); c != nil {
		cut = c.Abort
	}
	return conn.NewPageMemory(f.Unwritten, cut, f.AnswerTenants(ctx))
}

// ReserveAnswer reserves memory for a response of this size, in place of an earlier reservation.
func (f *Front) ReserveAnswer(ctx *fasthttp.RequestCtx, bytes int) error {
	c := conn.Of(ctx.Conn())
	if c == nil {
		return nil
	}
	return c.ReserveAnswer(f.Unwritten, bytes, func() []conn.Tenant { return f.AnswerTenants(ctx) })
}

// AnswerTenants returns what the response of a request counts for: the organization of a credential that is known to be good, and
// the client address.
func (f *Front) AnswerTenants(ctx *fasthttp.RequestCtx) []conn.Tenant {
	address := conn.Tenant{Address: f.ClientAddress(ctx)}
	organization := InfoOf(ctx).Organization
	if organization == uuid.Nil || !f.isVerified(ctx, organization) {
		return []conn.Tenant{address}
	}
	return []conn.Tenant{{Organization: organization}, address}
}

// isVerified reports whether the request's credential is known to be the organization's. An API key proves nothing until
// this instance has used it successfully; an access token was verified before its organization was recorded.
func (f *Front) isVerified(ctx *fasthttp.RequestCtx, organization uuid.UUID) bool {
	key := ctx.Request.Header.Peek(headerAPIKey)
	return len(key) == 0 || f.Hooks.HasVerified(organization, string(key))
}

// ReleaseAnswer releases the reservation of a response that turned out small.
func ReleaseAnswer(ctx *fasthttp.RequestCtx) {
	conn.Of(ctx.Conn()).ReleaseAnswer()
}

// reserveWritten reserves memory for the response that the handler has written, or refuses it. A write that was carried out
// stays so: its client learns that the outcome is unknown.
func (f *Front) reserveWritten(ctx *fasthttp.RequestCtx) error {
	if ctx.Response.IsBodyStream() {
		return nil
	}
	size := len(ctx.Response.Body())
	if size <= SmallAnswer || InfoOf(ctx).Shared {
		ReleaseAnswer(ctx)
		return nil
	}
	err := f.ReserveAnswer(ctx, size)
	if err != nil && !ctx.IsGet() && !ctx.IsHead() {
		return ErrUnansweredWrite
	}
	return err
}
