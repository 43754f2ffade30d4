package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// newSet returns a set whose limits no test reaches.
func newSet() *Set { return NewSet(Config{Limit: 1000, LimitPerAddress: 1000}) }

// newConnections returns both ends of a connection: as the server reads it, and the client's.
func newConnections(t *testing.T) (*Conn, net.Conn) { return newConnectionsOf(t, newSet()) }

func newConnectionsOf(t *testing.T, set *Set) (*Conn, net.Conn) {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	client, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	accepted, err := set.Listen(plain).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	return accepted.(*Conn), client
}

func read(t *testing.T, conn net.Conn, size int) string {
	t.Helper()
	buffer := make([]byte, size)
	if _, err := io.ReadFull(conn, buffer); err != nil {
		t.Fatal(err)
	}
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
		if _, err := client.Write(sent[:total]); err != nil {
			t.Fatal(err)
		}
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
		got := make(chan string)
		waiting := make(chan struct{})
		try := conn.ahead.tryOnce
		conn.ahead.try = func(fd uintptr) bool {
			done := try(fd)
			if !done {
				waiting <- struct{}{}
			}
			return done
		}
		go func() { got <- read(t, conn, 1) }()
		<-waiting
		if conn.ahead.buffered() {
			t.Error("it holds one")
		}
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if text := <-got; text != "x" {
			t.Errorf("%q", text)
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
			ended := make(chan error)
			go func() {
				_, err := conn.Read(make([]byte, 1))
				ended <- err
			}()
			if err := test.end(conn, client); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if conn.ahead.buffered() {
				t.Error("it keeps a buffer")
			}
		})
	}
}
