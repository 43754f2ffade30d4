package server

import (
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

// A client that does not read leaves its answer in memory until the write times out. So the bytes of large answers are
// reserved, in all and for each organization and client address, until they are written.
const (
	smallAnswer = 4 << 10 // bytes; needs no place

	maxUnwritten = 128 << 20 // bytes

	// What a list reserves for each of its items before it reads them from Redis: the most that they have, nearly. When the
	// answer is made, its own size takes the place of that.
	agentBytes   = maxMetadata + 2<<10
	summaryBytes = 512
)

func newUnwritten() *pool { return newPool(maxUnwritten, errManyUnwritten, errOwnUnwritten) }

// reserveAnswer reserves memory for an answer of so many bytes, in place of what is reserved already.
func (s *Server) reserveAnswer(ctx *fasthttp.RequestCtx, bytes int) error {
	c := connectionOf(ctx.Conn())
	if c == nil {
		return nil
	}
	now := time.Now()
	if one := c.answer.Load(); one != nil {
		return one.resize(bytes, now)
	}
	one, err := s.unwritten.reserve(bytes, now, c.Abort, s.answerHolders(ctx)...)
	if err != nil {
		return err
	}
	c.answer.Store(one)
	c.answering.Store(true)
	return nil
}

func (s *Server) answerHolders(ctx *fasthttp.RequestCtx) []account {
	address := account{address: s.clientAddress(ctx)}
	organization := askedOf(ctx).organization
	if organization == uuid.Nil || !s.hasShown(ctx, organization) {
		return []account{address}
	}
	return []account{{organization: organization}, address}
}

// hasShown says whether the request's credential is the organization's: an API key names one, which proves nothing until this
// instance has seen the key to be good. An access token was verified before its organization was noted.
func (s *Server) hasShown(ctx *fasthttp.RequestCtx, organization uuid.UUID) bool {
	key := ctx.Request.Header.Peek(headerAPIKey)
	return len(key) == 0 || s.store.HasSeen(redisstore.APIKey{Organization: organization, Hash: token.Hash(string(key))})
}

// releaseAnswer gives back what was reserved for an answer that is a small one.
func releaseAnswer(ctx *fasthttp.RequestCtx) {
	if c := connectionOf(ctx.Conn()); c != nil && c.answer.Load() != nil {
		c.answer.Swap(nil).release()
	}
}

// admitAnswer refuses a large answer that there is no room for. What a write has changed stays changed, so that its client
// hears that the outcome is unknown.
func (s *Server) admitAnswer(ctx *fasthttp.RequestCtx) error {
	if ctx.Response.IsBodyStream() {
		return nil
	}
	size := len(ctx.Response.Body())
	if size <= smallAnswer || askedOf(ctx).shared {
		releaseAnswer(ctx)
		return nil
	}
	err := s.reserveAnswer(ctx, size)
	if err != nil && !ctx.IsGet() && !ctx.IsHead() {
		return errUnansweredWrite
	}
	return err
}
