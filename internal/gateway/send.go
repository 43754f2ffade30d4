package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"remit/client/wire"
)

// Why a call to the provider was ended by the gateway.
var (
	errFirstByte = errors.New("the provider did not answer within first_byte_seconds")
	errIdle      = errors.New("the provider sent nothing for idle_seconds")
	errMax       = errors.New("the call took longer than max_seconds")
	errDrained   = errors.New("the client hung up, and drain_seconds have passed")
	errCut       = errors.New("the gateway stopped, and stop_seconds have passed")
)

// newTransport returns what sends calls: once each, along no redirect, and asking for no compression.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// attempt is the one time that a call is sent.
type attempt struct {
	ctx       context.Context
	end       context.CancelCauseFunc
	firstByte *time.Timer // ends it unless the provider answers
	idle      *time.Timer // ends it when an answer stalls; it runs while one is read
	drain     func()      // gives it drain_seconds; it may be called again
	connected atomic.Bool
	wrote     atomic.Bool
	isRead    atomic.Bool // the body
}

// newAttempt returns an attempt that ends by the settings, and drains when the client hangs up. Release it.
func (e *exchange) newAttempt() (a *attempt, release func()) {
	a = new(attempt)
	bounded, cancelMax := context.WithTimeoutCause(e.gateway.calls, e.settings.Max, errMax)
	a.ctx, a.end = context.WithCancelCause(bounded)
	a.firstByte = time.AfterFunc(e.settings.FirstByte, func() { a.end(errFirstByte) })
	a.idle = time.AfterFunc(e.settings.Idle, func() { a.end(errIdle) })
	a.idle.Stop()
	var drained atomic.Pointer[time.Timer]
	a.drain = sync.OnceFunc(func() { drained.Store(time.AfterFunc(e.settings.Drain, func() { a.end(errDrained) })) })
	stop := context.AfterFunc(e.request.Context(), a.drain)
	return a, func() {
		stop()
		a.firstByte.Stop()
		a.idle.Stop()
		if timer := drained.Load(); timer != nil {
			timer.Stop()
		}
		a.end(nil)
		cancelMax()
	}
}

// send sends a request once and passes the answer on. Without a hold it costs nothing.
func (e *exchange) send(body []byte, call *wire.Call, h *hold) *refusal {
	a, release := e.newAttempt()
	defer release()
	answer, err := e.gateway.transport.RoundTrip(a.request(e, body))
	e.memory.Release()
	if call != nil {
		call.Body = nil
	}
	if err != nil {
		return e.unanswered(a, h, err)
	}
	defer answer.Body.Close()
	e.report.firstByte = time.Since(e.began)
	a.firstByte.Stop()
	return e.relay(a, answer, call, h)
}

// request returns the request to send.
func (a *attempt) request(e *exchange, body []byte) *http.Request {
	u := e.target.upstream
	to := *u.Base
	to.Path += "/" + e.target.path
	to.RawQuery = e.request.URL.RawQuery
	ctx := httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { a.connected.Store(true) },
		WroteHeaders: func() { a.wrote.Store(true) },
	})
	r := (&http.Request{
		Method: e.request.Method, URL: &to, Host: to.Host, Header: u.sentHeader(e.request.Header), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if body == nil {
		a.isRead.Store(true) // there is none: the header is all
		return r
	}
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) {
		if a.isRead.Load() {
			return nil, errSentOnce
		}
		return &onceBody{text: bytes.NewReader(body), isRead: &a.isRead}, nil
	}
	r.Body, _ = r.GetBody()
	return r
}

// isUnsent reports whether nothing of the request can have reached the provider.
func (a *attempt) isUnsent(err error) bool {
	var op *net.OpError
	isDial := errors.As(err, &op) && op.Op == "dial"
	return !a.isRead.Load() || isDial || a.connected.Load() && !a.wrote.Load()
}

var errSentOnce = errors.New("the connection ended, and a call is sent once")

// onceBody is a body of which, of all that are made for one call, one can be read. With a GetBody that always gave the body,
// http.Transport would send a call again on another connection: over HTTP/1 if it has an Idempotency-Key, over HTTP/2 on a GOAWAY and
// some resets. Without any it would not even send what it has not begun to send, because the connection had ended while it was idle.
type onceBody struct {
	text   io.Reader
	isRead *atomic.Bool
	isOne  bool
}

func (b *onceBody) Read(p []byte) (int, error) {
	if !b.isOne && !b.isRead.CompareAndSwap(false, true) {
		return 0, errSentOnce
	}
	b.isOne = true
	return b.text.Read(p)
}

func (b *onceBody) Close() error { return nil }

// unanswered settles a call that got no answer, and tells the client.
func (e *exchange) unanswered(a *attempt, h *hold, err error) *refusal {
	cause := cause(a.ctx, err)
	if h == nil || a.isUnsent(err) {
		e.settle(h, settlement{how: rolledBack, reason: "nothing was sent to the provider"})
		r := refuse(http.StatusBadGateway, "upstream_unreachable", "the provider could not be reached; nothing was sent").again(1)
		r.cause = cause
		return r
	}
	e.settle(h, settlement{how: byHold})
	r := refuse(http.StatusBadGateway, "upstream_unanswered", "the provider did not answer, and may have done the call: it costs what was held")
	if errors.Is(cause, errFirstByte) || errors.Is(cause, errMax) {
		r.status = http.StatusGatewayTimeout
	}
	r.cause = cause
	return r
}

// settle settles a call, if anything is held for it.
func (e *exchange) settle(h *hold, s settlement) {
	if h == nil {
		return
	}
	e.report.outcome = s.how
	h.settle(s)
}

// cause returns why the gateway ended an attempt, or else what kind of failure it was: the errors of the HTTP client may quote what a
// provider sent.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &op):
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	case errors.As(err, &certificate):
		return certificate
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errSentOnce):
		return err
	}
	return fmt.Errorf("the connection to the provider failed (%T)", err)
}
