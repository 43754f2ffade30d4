package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"remit/test/suite"
)

// call is the bytes of a request, and the expected start of its answer.
type call struct {
	request []byte
	expect  []byte
}

// post returns the call of a JSON request with a header line for its credential, "" for none.
func post(path, credential, body string) call {
	return call{
		request: fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			path, credential, len(body), body),
		expect: []byte("HTTP/1.1 20"),
	}
}

func get(path, credential string) call {
	return call{
		request: fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: bench\r\n%s\r\n", path, credential),
		expect:  []byte("HTTP/1.1 200"),
	}
}

// turns returns the next call of one connection, given the body of its previous answer (nil at first).
type turns func(answer []byte) call

// clients are persistent connections to one server, each with its own turns.
type clients []*clientConn

type clientConn struct {
	net.Conn
	in     *bufio.Reader
	next   turns
	answer []byte // body of the last one, until the next
	size   int    // bytes of the last answer in all
	shed   bool   // the last answer was 503
}

// connect opens that many connections, and closes them when the test or benchmark ends.
func connect(tb testing.TB, addr string, connections int, each func() turns) clients {
	tb.Helper()
	var c clients
	tb.Cleanup(func() {
		for _, conn := range c {
			_ = conn.Close()
		}
	})
	for range connections {
		conn := must(net.Dial("tcp", addr))(tb)
		c = append(c, &clientConn{Conn: conn, in: bufio.NewReaderSize(conn, 4<<10), next: each()})
	}
	return c
}

// greet makes a call on each connection, because the service soon closes connections without a request.
func greet(tb testing.TB, c clients) {
	tb.Helper()
	for _, conn := range c {
		noError(tb, conn.take())
	}
}

// run makes n calls, one at a time on each connection, and returns their latencies.
func (c clients) run(n int) ([]time.Duration, error) {
	return spread(len(c), n, func(conn int) error { return c[conn].take() })
}

// take makes the connection's next call and checks its answer.
func (c *clientConn) take() error {
	q := c.next(c.answer)
	if _, err := c.Write(q.request); err != nil {
		return err
	}
	length, err := c.readHeaders(q)
	if err != nil {
		return err
	}
	c.answer = slices.Grow(c.answer[:0], length)[:length]
	c.size += length
	_, err = io.ReadFull(c.in, c.answer)
	return err
}

func (c *clientConn) readHeaders(q call) (contentLength int, err error) {
	c.size = 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if c.size == 0 {
			if !bytes.HasPrefix(line, q.expect) {
				first := string(line) // Peek may overwrite it
				rest, _ := c.in.Peek(c.in.Buffered())
				return 0, fmt.Errorf("%q is answered with %s%s", q.request, first, rest)
			}
			c.shed = bytes.HasPrefix(line, []byte("HTTP/1.1 503"))
		}
		c.size += len(line)
		if len(line) == 2 {
			return contentLength, nil
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if contentLength, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		}
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var noError = suite.NoError
