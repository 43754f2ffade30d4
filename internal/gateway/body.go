package gateway

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime"
	"time"

	"remit/server/conn"
)

const (
	// bodiesMemory bounds the bytes of all bodies that are read or not yet sent. An organization gets half of it.
	bodiesMemory = 512 << 20
	// bodyTime bounds how long a request takes to arrive.
	bodyTime = 60 * time.Second
)

var (
	errBodiesFull = errors.New("the gateway has no memory left for requests")
	errBodiesHalf = errors.New("your organization's requests take as much of the gateway's memory as one may have")
)

func newBodies() *conn.Pool { return conn.NewPool(bodiesMemory, errBodiesFull, errBodiesHalf) }

// parsing bounds how many bodies are parsed at once: what a JSON text is parsed into can take fifty times its bytes.
type parsing struct{ small, large chan struct{} }

// largeBody is a size in bytes, above which one body is parsed at a time.
const largeBody = 1 << 20

func newParsing() parsing {
	return parsing{make(chan struct{}, runtime.GOMAXPROCS(0)), make(chan struct{}, 1)}
}

// begin waits for a turn to parse a body of so many bytes. Call what it returns at the end.
func (p *parsing) begin(size int) (end func()) {
	turns := p.small
	if size > largeBody {
		turns = p.large
	}
	turns <- struct{}{}
	return func() { <-turns }
}

// readBody reads the body of a request, as bytes that e.releaseBody gives back.
func (e *exchange) readBody() ([]byte, *refusal) {
	r := e.request
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must not be compressed")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be application/json")
	}
	most := e.settings.MaxBody
	if r.ContentLength > most {
		return nil, bodyTooLarge()
	}
	size := r.ContentLength
	if size < 0 {
		size = most
	}
	var err error
	if e.memory, err = e.gateway.bodies.Reserve(int(size), time.Now(), func() {}, conn.Tenant{Organization: e.caller.Organization}); err != nil {
		return nil, refuse(http.StatusServiceUnavailable, "unavailable", err.Error()).again(1)
	}
	e.memory.Pin()
	_ = e.control.SetReadDeadline(time.Now().Add(bodyTime)) // a writer without deadlines is a test's
	text := bytes.NewBuffer(make([]byte, 0, min(size, 1<<20)+1))
	_, err = io.Copy(text, http.MaxBytesReader(e.writer, r.Body, most))
	_ = e.control.SetReadDeadline(time.Time{})
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, bodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, "request_timeout", "the body did not arrive in time")
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "invalid_request", "the body did not arrive whole")
	}
	_ = e.memory.Resize(text.Len(), time.Now()) // smaller always fits
	return text.Bytes(), nil
}

func bodyTooLarge() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, "body_too_large", "the body is larger than the gateway takes")
}
