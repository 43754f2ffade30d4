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
	"unicode/utf8"

	"remit/server/conn"
)

const (
	// bodiesMemory bounds the bytes of all bodies that are read or not yet sent. An organization gets half of it.
	bodiesMemory = 512 << 20
	// bodyTime bounds how long a request takes to arrive.
	bodyTime = 60 * time.Second
	// refusedTime bounds how long net/http goes on reading a request that is refused before its body was read.
	refusedTime = time.Second
	// mostValues bounds the values in a body: each takes up to 200 bytes once it is read, however short it is written.
	mostValues = 500_000

	// answersMemory bounds the bytes that are kept of all answers until they end, beyond smallAnswer of each. An organization gets half of it.
	answersMemory = 512 << 20
	smallAnswer   = 64 << 10
)

var (
	errBodiesFull = errors.New("the gateway has no memory left for requests")
	errBodiesHalf = errors.New("your organization's requests take as much of the gateway's memory as one may have")
)

func newBodies() *conn.Pool  { return conn.NewPool(bodiesMemory, errBodiesFull, errBodiesHalf) }
func newAnswers() *conn.Pool { return conn.NewPool(answersMemory, errBodiesFull, errBodiesHalf) }

// parsing bounds how many bodies are parsed at once: what a JSON text is parsed into can take fifty times its bytes.
type parsing struct{ small, large chan struct{} }

// largeBody is a size in bytes, above which one body is parsed at a time, and read only for a credential that is live: one that was revoked
// could take its organization's memory with it.
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

// readBody reads the body of a request, whose memory is reserved until send or finish releases it.
func (e *exchange) readBody() ([]byte, *refusal) {
	r := e.request
	if codings := r.Header.Values("Content-Encoding"); len(codings) > 1 || len(codings) == 1 && codings[0] != "identity" {
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
	if size > largeBody {
		if _, refused := e.readActive(); refused != nil {
			return nil, refused
		}
	}
	cut := func() { _ = e.control.SetReadDeadline(time.Unix(1, 0)) } // it arrives too slowly, and others need the room
	var err error
	if e.memory, err = e.gateway.bodies.Reserve(int(size), time.Now(), cut, conn.Tenant{Organization: e.caller.Organization}); err != nil {
		return nil, noMemory(err)
	}
	text := bytes.NewBuffer(make([]byte, 0, min(size, 1<<20)+bytes.MinRead))
	_, err = io.Copy(text, http.MaxBytesReader(e.writer, r.Body, most))
	e.memory.Pin()
	if refused := e.checkArrival(text.Len(), err); refused != nil {
		return nil, refused
	}
	e.arrived()
	return text.Bytes(), checkText(text.Bytes())
}

// checkArrival refuses a body that did not arrive whole.
func (e *exchange) checkArrival(size int, err error) *refusal {
	isDisplaced := e.memory.Resize(size, time.Now()) != nil // what is smaller fits otherwise
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return bodyTooLarge()
	case isDisplaced:
		return noMemory(errBodiesFull)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "request_timeout", "the body did not arrive in time")
	case err != nil:
		return refuse(http.StatusBadRequest, "invalid_request", "the body did not arrive whole")
	}
	return nil
}

// arrived lifts the bound of a request that has come whole: from now on reading finds out only whether its client hangs up.
func (e *exchange) arrived() {
	e.hasArrived = true
	_ = e.control.SetReadDeadline(time.Time{}) // a writer without deadlines is a test's
}

// checkText refuses what servers read in different ways, and what takes much more memory once it is read.
func checkText(body []byte) *refusal {
	switch {
	case !utf8.Valid(body):
		return refuse(http.StatusBadRequest, "invalid_request", "the body is not in UTF-8")
	case len(body) > mostValues && valuesIn(body) > mostValues:
		return refuse(http.StatusRequestEntityTooLarge, "body_too_large", "the body has more values in JSON than the gateway takes")
	}
	return nil
}

// valuesIn counts the values of a JSON text, and the objects and arrays among them twice.
func valuesIn(body []byte) int {
	count, isText := 1, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case isText && c == '\\':
			i++
		case c == '"':
			isText = !isText
		case !isText && (c == ',' || c == '[' || c == '{'):
			count++
		}
	}
	return count
}

func noMemory(err error) *refusal {
	return refuse(http.StatusServiceUnavailable, "unavailable", err.Error()).retryAfter(1)
}

func bodyTooLarge() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, "body_too_large", "the body is larger than the gateway takes")
}
