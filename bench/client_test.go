package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// call is a request as it goes over the wire, and how its answer begins.
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

// clients are kept connections to one server.
type clients struct {
	conns []*clientConn
}

type clientConn struct {
	net.Conn
	in *bufio.Reader
}

func connect(tb testing.TB, addr string, connections int) *clients {
	tb.Helper()
	c := &clients{}
	for range connections {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = conn.Close() })
		c.conns = append(c.conns, &clientConn{conn, bufio.NewReaderSize(conn, 8<<10)})
	}
	return c
}

// run makes n calls, as many at once as there are connections, and returns each one's latency.
func (c *clients) run(n int, nth func(i int) call) ([]time.Duration, error) {
	latencies := make([]time.Duration, n)
	var next atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for _, conn := range c.conns {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				began := time.Now()
				if err := conn.do(nth(i)); err != nil {
					failed.Store(&err)
					return
				}
				latencies[i] = time.Since(began)
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return latencies, nil
}

// do makes one call and checks its answer.
func (c *clientConn) do(q call) error {
	if _, err := c.Write(q.request); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, q.expect) {
			rest, _ := c.in.Peek(c.in.Buffered())
			return fmt.Errorf("%q is answered with %s%s", q.request, line, rest)
		}
		if len(line) == 2 {
			break
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	_, err := io.CopyN(io.Discard, c.in, int64(length))
	return err
}

// median returns the middle of some durations, which it sorts.
func median[T ~int64 | ~float64](of []T) T {
	slices.Sort(of)
	return of[len(of)/2]
}
