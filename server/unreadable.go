package server

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// renewWriteTimeout is for what is written before a handler has run: fasthttp leaves the deadline of the last answer, which
// may have been long ago on a connection that is kept.
func (s *Server) renewWriteTimeout(ctx *fasthttp.RequestCtx) {
	_ = ctx.Conn().SetWriteDeadline(time.Now().Add(s.http.WriteTimeout)) // an error means that nothing can be written at all
}

// answerUnreadable answers what fasthttp could not read as a request.
func (s *Server) answerUnreadable(ctx *fasthttp.RequestCtx, err error) {
	s.begin(ctx)
	defer s.endAsked(ctx)
	defer s.answerPanic(ctx)
	askedOf(ctx).unread = true
	s.renewWriteTimeout(ctx)
	connectionOf(ctx.Conn()).leaveUnread()
	noRoom := connectionOf(ctx.Conn()).bodyRefusal()
	var plain tls.RecordHeaderError
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.As(err, &plain) && plain.Conn != nil:
		s.answerPlainHTTP(ctx, plain.Conn)
		return
	case errors.As(err, &small):
		err = errHeadersTooLarge
	case noRoom != nil:
		err = noRoom
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		err = errBodyTooLarge
	case errors.As(err, &network) && network.Timeout(), isSlowChunk(err):
		err = errSlowRequest
	default:
		err = errUnreadable
	}
	s.answerProblem(ctx, err)
}

// isSlowChunk says whether the time was over within the line of a chunk's size: fasthttp keeps the cause as text alone.
func isSlowChunk(err error) bool {
	var broken fasthttp.ErrBrokenChunk
	return errors.As(err, &broken) && strings.HasSuffix(broken.Error(), os.ErrDeadlineExceeded.Error())
}

// answerPlainHTTP answers who spoke plain HTTP to a TLS port, beneath TLS: they would otherwise see a closed connection
// only.
func (s *Server) answerPlainHTTP(ctx *fasthttp.RequestCtx, conn net.Conn) {
	s.answerProblem(ctx, errPlainHTTP)
	ctx.SetConnectionClose()
	_, _ = ctx.Response.WriteTo(conn) // whoever does not read it learns less
}
