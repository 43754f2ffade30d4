package web

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// renewWriteTimeout sets the write deadline for a response that is written before a handler runs. fasthttp leaves the
// deadline of the previous response, which may have passed on a kept connection.
func (f *Front) renewWriteTimeout(ctx *fasthttp.RequestCtx) {
	_ = ctx.Conn().SetWriteDeadline(time.Now().Add(f.HTTP.WriteTimeout)) // it fails only on a closed connection
}

// AnswerUnreadable answers what fasthttp could not read as a request.
func (f *Front) AnswerUnreadable(ctx *fasthttp.RequestCtx, err error) {
	f.StartRequest(ctx)
	defer f.FinishRequest(ctx)
	defer f.answerPanic(ctx)
	InfoOf(ctx).unread = true
	f.renewWriteTimeout(ctx)
	conn.Of(ctx.Conn()).LeaveUnread()
	noRoom := conn.Of(ctx.Conn()).BodyRefusal()
	var plain tls.RecordHeaderError
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.As(err, &plain) && plain.Conn != nil:
		f.answerPlainHTTP(ctx, plain.Conn)
		return
	case errors.As(err, &small):
		err = ErrHeadersTooLarge
	case noRoom != nil:
		err = noRoom
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		err = ErrBodyTooLarge
	case errors.As(err, &network) && network.Timeout(), isSlowChunk(err):
		err = ErrSlowRequest
	default:
		err = ErrUnreadable
	}
	f.AnswerProblem(ctx, err)
}

// isSlowChunk reports a timeout while reading the size line of a chunk, whose cause fasthttp keeps only as text.
func isSlowChunk(err error) bool {
	var broken fasthttp.ErrBrokenChunk
	return errors.As(err, &broken) && strings.HasSuffix(broken.Error(), os.ErrDeadlineExceeded.Error())
}

// answerPlainHTTP answers plain HTTP on a TLS port, beneath TLS. Otherwise the client would only see the connection close.
func (f *Front) answerPlainHTTP(ctx *fasthttp.RequestCtx, conn net.Conn) {
	f.AnswerProblem(ctx, ErrPlainHTTP)
	ctx.SetConnectionClose()
	_, _ = ctx.Response.WriteTo(conn) // best effort: the connection closes next
}
