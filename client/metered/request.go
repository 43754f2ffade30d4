package metered

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"remit/client/wire"
)

// formats are the ends of the paths that are metered.
var formats = map[string]wire.Format{
	"/chat/completions": wire.ChatCompletions, "/responses": wire.Responses, "/messages": wire.Messages,
}

// formatOf returns the format of a request that is metered, and whether the request passes as it is.
func formatOf(r *http.Request) (f wire.Format, passes bool) {
	if isDisguised(r.Header) {
		return nil, false
	}
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return nil, true
	}
	path := strings.TrimRight(r.URL.EscapedPath(), "/")
	for suffix, f := range formats {
		if strings.HasSuffix(path, suffix) {
			return f, false
		}
	}
	return nil, strings.HasSuffix(path, "/messages/count_tokens") || strings.HasSuffix(path, "/responses/input_tokens") ||
		strings.HasSuffix(path, "/cancel")
}

// isDisguised reports whether a server may take a request for another than its method and path say.
func isDisguised(h http.Header) bool {
	return slices.ContainsFunc([]string{"Upgrade", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override"}, func(name string) bool {
		return h.Get(name) != ""
	})
}

// request returns the request to send, and whether its body has been read: before that, nothing can have been sent whole.
//
// It can be sent once. With a GetBody that always gives the body, http.Transport would send it again on another connection when a reused
// one ends: over HTTP/1 if it has an Idempotency-Key, and over HTTP/2 on a GOAWAY and some resets. The provider could then be paid twice
// for one hold. Without a GetBody it would not send it again either where it wrote nothing, as on a connection that ended while it was
// idle.
func request(ctx context.Context, q *wire.Call, r *http.Request) (sent *http.Request, isRead *atomic.Bool) {
	isRead = new(atomic.Bool)
	sent = r.Clone(ctx)
	sent.GetBody = func() (io.ReadCloser, error) {
		if isRead.Load() {
			return nil, errSentOnce
		}
		return &requestBody{text: bytes.NewReader(q.Body), isRead: isRead}, nil
	}
	sent.Body, _ = sent.GetBody()
	sent.ContentLength = int64(len(q.Body))
	sent.Header.Del("Content-Length")
	sent.Header.Del("Accept-Encoding") // http.Transport then decompresses what it has to read
	return sent, isRead
}

var errSentOnce = errors.New("metered: the connection ended, and a call is sent once")

// requestBody notes that it is read. Of the bodies of a call, one can be read. http.Transport writes the header before it reads one whose
// type it does not know: until then it can have sent no call.
type requestBody struct {
	text   io.Reader
	isRead *atomic.Bool // this body, or another one
	isOne  bool         // that is read
}

func (b *requestBody) Read(p []byte) (int, error) {
	if !b.isOne && !b.isRead.CompareAndSwap(false, true) {
		return 0, errSentOnce
	}
	b.isOne = true
	return b.text.Read(p)
}

func (b *requestBody) Close() error { return nil }

// read reads a request and bounds its tokens. It closes the request's body.
func (t *Transport) read(r *http.Request, f wire.Format) (*wire.Call, error) {
	text, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, &UnboundedCall{Reason: "the price of " + r.Method + " " + r.URL.Path + " is not known; send it by a client that is not metered"}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, &UnboundedCall{Reason: "its body is compressed"}
	}
	if t.Prices == nil {
		return nil, errors.New("metered: Transport.Prices is nil")
	}
	return wire.Read(f, text, t.Prices, wire.Options{Models: t.Models})
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxBody+1))
	return text, err // wire.Read refuses what is longer
}
