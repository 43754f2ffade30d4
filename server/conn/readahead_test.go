package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"testing"
	"time"

	"remit/test/suite"
)

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

// newSet returns a set whose limits no test reaches.
func newSet() *Set { return NewSet(Config{Limit: 1000, LimitPerAddress: 1000}) }

// newConnections returns both ends of a connection: as the server reads it, and the client's.
func newConnections(t *testing.T) (*Conn, net.Conn) { return newConnectionsOf(t, newSet()) }

func newConnectionsOf(t *testing.T, set *Set) (*Conn, net.Conn) {
	t.Helper()
	plain := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer plain.Close()
	client := must(net.Dial("tcp", plain.Addr().String()))(t)
	t.Cleanup(func() { _ = client.Close() })
	accepted := must(set.Listen(plain).Accept())(t)
	t.Cleanup(func() { _ = accepted.Close() })
	return accepted.(*Conn), client
}

// wantEqual fails the test unless the two are equal, and says what they are.
func wantEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

var await = suite.Eventually

// outcome is what a read returns.
type outcome struct {
	text string
	err  error
}

// readBeside reads once, beside the test.
func readBeside(conn net.Conn, size int) <-chan outcome {
	read := make(chan outcome, 1)
	go func() {
		buffer := make([]byte, size)
		n, err := conn.Read(buffer)
		read <- outcome{string(buffer[:n]), err}
	}()
	return read
}

func read(t *testing.T, conn net.Conn, size int) string {
	t.Helper()
	buffer := make([]byte, size)
	must(io.ReadFull(conn, buffer))(t)
	return string(buffer)
}

func TestReadAheadBytesAreReadInOrder(t *testing.T) {
	t.Parallel()
	conn, client := newConnections(t)
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 3*readAheadSize/16)
	for _, sizes := range [][]int{{1, 15}, {1, 1, 1, 13}, {1, len(sent) - 1}, {1, 99, 1, len(sent) - 101}, {16, 1, 15}} {
		total := 0
		for _, size := range sizes {
			total += size
		}
		must(client.Write(sent[:total]))(t)
		got := ""
		for _, size := range sizes {
			got += read(t, conn, size)
		}
		if got != string(sent[:total]) {
			t.Errorf("by %v it is not what was sent", sizes)
		}
		if conn.ahead.buffered() {
			t.Errorf("by %v: nothing is left, but its buffer is kept", sizes)
		}
	}
}

func TestAConnectionWaitsForItsFirstByteWithoutABuffer(t *testing.T) {
	t.Parallel()
	conn, client := newConnections(t)
	for range 3 {
		waiting := make(chan struct{})
		try := conn.ahead.tryOnce
		conn.ahead.try = func(fd uintptr) bool {
			done := try(fd)
			if !done {
				waiting <- struct{}{}
			}
			return done
		}
		reading := readBeside(conn, 1)
		<-waiting
		if conn.ahead.buffered() {
			t.Error("it holds one")
		}
		must(client.Write([]byte("x")))(t)
		if got := <-reading; got != (outcome{"x", nil}) {
			t.Error(got)
		}
	}
}

func TestReadingAheadEndsAsReadingDoes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(conn *Conn, client net.Conn) error
		want error
	}{
		"the client leaves": {func(_ *Conn, client net.Conn) error { return client.Close() }, io.EOF},
		"time is up":        {func(conn *Conn, _ net.Conn) error { return conn.SetReadDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"it is closed":      {func(conn *Conn, _ net.Conn) error { return conn.Close() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, client := newConnections(t)
			reading := readBeside(conn, 1)
			must(0, test.end(conn, client))(t)
			if got := <-reading; !errors.Is(got.err, test.want) {
				t.Errorf("%v, want %v", got.err, test.want)
			}
			if conn.ahead.buffered() {
				t.Error("it keeps a buffer")
			}
		})
	}
}
