package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
)

// Once sends a request's body once, and knows whether that can have reached the provider. It keeps the body until it was read.
//
// With a GetBody that always gives the body, http.Transport would send a call again on another connection when a reused one ends: over
// HTTP/1 if it has an Idempotency-Key, and over HTTP/2 on a GOAWAY and some resets. The provider could then be paid twice for one hold.
// Without a GetBody it would not send it again either where it wrote nothing, as on a connection that ended while it was idle.
type Once struct {
	connected, wrote atomic.Bool

	mu     sync.Mutex
	text   []byte // not read yet
	isRead bool   // or there is none: then the header is all that there is to send
	reader *onceBody
}

// NewOnce returns what sends this body; nil: a request without one.
func NewOnce(body []byte) *Once { return &Once{text: body, isRead: body == nil} }

// ErrSentOnce: a call was to be sent again, because its connection ended. It was not.
var ErrSentOnce = errors.New("the connection ended, and a call is sent once")

// Request returns a copy of the request to send, with the body.
func (o *Once) Request(ctx context.Context, r *http.Request) *http.Request {
	sent := r.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { o.connected.Store(true) },
		WroteHeaders: func() { o.wrote.Store(true) },
	}))
	if o.isRead {
		return sent
	}
	sent.ContentLength = int64(len(o.text))
	sent.Header.Del("Content-Length")
	sent.GetBody = func() (io.ReadCloser, error) {
		if o.began() {
			return nil, ErrSentOnce
		}
		return &onceBody{o}, nil
	}
	sent.Body = &onceBody{o}
	return sent
}

func (o *Once) began() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isRead
}

// IsUnsent reports whether a request that ended with this error cannot have reached the provider whole. http.Transport writes the header
// before it reads a body whose type it does not know.
func (o *Once) IsUnsent(err error) bool {
	var op *net.OpError
	isDial := errors.As(err, &op) && op.Op == "dial"
	return !o.began() || isDial || o.connected.Load() && !o.wrote.Load()
}

// onceBody is a body. Of all that are made for one request, one can be read.
type onceBody struct{ of *Once }

func (b *onceBody) Read(p []byte) (n int, err error) {
	o := b.of
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !o.isRead:
		o.isRead, o.reader = true, b
	case o.reader != b:
		return 0, ErrSentOnce
	}
	if len(o.text) == 0 {
		return 0, io.EOF
	}
	n = copy(p, o.text)
	if o.text = o.text[n:]; len(o.text) == 0 {
		o.text = nil // the answer may take long
	}
	return n, nil
}

// Close ends the reading of a body that was begun.
func (b *onceBody) Close() error {
	o := b.of
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader == b {
		o.text, o.reader = nil, nil
	}
	return nil
}
