package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
}

// newAttempt returns an attempt that ends by the settings, and drains when the client hangs up. Release it.
func (e *exchange) newAttempt() (a *attempt, release func()) {
	a = new(attempt)
	a.ctx, a.end = context.WithCancelCause(e.gateway.calls)
	most := time.AfterFunc(e.settings.Max, func() { a.end(errMax) })
	a.firstByte = time.AfterFunc(e.settings.FirstByte, func() { a.end(errFirstByte) })
	a.idle = time.AfterFunc(e.settings.Idle, func() { a.end(errIdle) })
	a.idle.Stop()
	var drained atomic.Pointer[time.Timer]
	a.drain = sync.OnceFunc(func() { drained.Store(time.AfterFunc(e.settings.Drain, func() { a.end(errDrained) })) })
	stop := context.AfterFunc(e.request.Context(), a.drain)
	return a, func() {
		stop()
		most.Stop()
		a.firstByte.Stop()
		a.idle.Stop()
		if timer := drained.Load(); timer != nil {
			timer.Stop()
		}
		a.end(nil)
	}
}

// send sends a request once and passes the answer on. Without a hold it costs nothing.
func (e *exchange) send(body []byte, call *wire.Call, h *hold) *refusal {
	if e.request.Context().Err() != nil {
		e.settle(h, settlement{how: rolledBack, reason: "the client hung up before anything was sent"})
		panic(http.ErrAbortHandler)
	}
	a, release := e.newAttempt()
	defer release()
	once := wire.NewOnce(body)
	if call != nil {
		call.Forget()
	}
	answer, err := e.gateway.transport.RoundTrip(once.Request(a.ctx, e.upstreamRequest()))
	e.memory.Release()
	if err != nil {
		return e.unanswered(h, once.IsUnsent(err), cause(a.ctx, err))
	}
	defer answer.Body.Close()
	e.report.firstByte = time.Since(e.began)
	a.firstByte.Stop()
	return e.relay(a, answer, call, h)
}

// upstreamRequest returns the request to send, without its body.
func (e *exchange) upstreamRequest() *http.Request {
	u := e.target.upstream
	to := *u.Base
	to.Path += "/" + e.target.path
	to.RawQuery = e.request.URL.RawQuery
	return &http.Request{
		Method: e.request.Method, URL: &to, Host: to.Host, Header: u.sentHeader(e.request.Header), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

// unanswered settles a call that got no answer, and tells the client.
func (e *exchange) unanswered(h *hold, isUnsent bool, cause error) (r *refusal) {
	switch {
	case isUnsent:
		e.settle(h, settlement{how: rolledBack, reason: "nothing was sent to the provider"})
		r = refuse(http.StatusBadGateway, "upstream_unreachable", "the provider could not be reached; nothing was sent").retryAfter(1)
	case h == nil:
		r = refuse(http.StatusBadGateway, "upstream_unanswered", "the provider did not answer").retryAfter(1)
	default:
		e.settle(h, settlement{how: byHold})
		r = refuse(http.StatusBadGateway, "upstream_unanswered", "the provider did not answer, and may have done the call: it costs what was held")
	}
	if !isUnsent && (errors.Is(cause, errFirstByte) || errors.Is(cause, errMax)) {
		r.status = http.StatusGatewayTimeout
	}
	r.cause = cause
	return r
}

// settle settles a call, if anything is held for it and it is not settled.
func (e *exchange) settle(h *hold, s settlement) {
	if h != nil && h.settle(s) {
		e.report.outcome = s.how
	}
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
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, wire.ErrSentOnce):
		return err
	}
	return fmt.Errorf("the connection to the provider failed (%T)", err)
}
