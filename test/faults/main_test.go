package faults

import (
	"bufio"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"remit/test/serviceproc"
)

var repeats = flag.Int("repeats", 1, "how many times as often each scenario repeats its fault")

func TestMain(m *testing.M) {
	if os.Getenv(holderVariable) != "" {
		os.Exit(holdLease(os.Stdin, os.Stdout))
	}
	os.Exit(serviceproc.Tests{M: m, Race: raceDetector, End: removePreload}.Run())
}

// rounds is how often a scenario repeats its fault.
func rounds(few int) int { return few * *repeats }

// closingListener returns the address of a listener that reads one byte of each connection and closes it.
func closingListener(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// closingOnce returns the address of a server that answers the first request of its only connection, and closes the
// connection and itself at the second.
func closingOnce(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		requests := bufio.NewReader(conn)
		for n := range 2 {
			request, err := http.ReadRequest(requests)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			if n == 0 {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			}
		}
		listener.Close()
	}()
	return listener.Addr().String()
}
