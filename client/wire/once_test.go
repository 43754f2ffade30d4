package wire

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// Of the bodies of one request, one can be read, and what was read is kept no longer. sdk's tests send some.
func TestABodyIsReadOnce(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("x", 1000))
	for name, read := range map[string]func(io.ReadCloser) error{
		"whole": func(body io.ReadCloser) error { return iotest.TestReader(body, text) },
		"closed midway": func(body io.ReadCloser) error {
			_, _ = io.ReadFull(body, make([]byte, 10))
			_ = body.Close()
			if n, err := body.Read(make([]byte, 10)); n != 0 || err != ErrSentOnce {
				return errors.New("it can be read once it is closed")
			}
			return nil
		},
	} {
		o := NewOnce(text)
		sent := o.Request(t.Context(), &http.Request{Header: http.Header{"Content-Length": {"1"}}})
		second, err := sent.GetBody()
		if err != nil || second.Close() != nil || !o.IsUnsent(io.EOF) || sent.ContentLength != 1000 || sent.Header.Get("Content-Length") != "" {
			t.Errorf("%s: before it is read: %v, %+v", name, err, sent)
		}
		if err := read(sent.Body); err != nil || o.text != nil {
			t.Errorf("%s: %v, and %d bytes are kept", name, err, len(o.text))
		}
		if n, err := second.Read(make([]byte, 1)); n != 0 || err != ErrSentOnce {
			t.Errorf("%s: a second body: %d bytes, %v", name, n, err)
		}
		if _, err := sent.GetBody(); err != ErrSentOnce || o.IsUnsent(io.EOF) || !o.IsUnsent(&net.OpError{Op: "dial", Err: io.EOF}) {
			t.Errorf("%s: a third body: %v", name, err)
		}
	}
	if o := NewOnce(nil); o.IsUnsent(io.EOF) || o.Request(t.Context(), new(http.Request)).Body != nil {
		t.Error("a request without a body")
	}
}
