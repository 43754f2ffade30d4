package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Serve accepts connections until the test ends, and serves each in a goroutine of its own, which must end with its
// connection. It returns their address. What connects to it must be opened later, so that it is closed before.
func Serve(tb testing.TB, serve func(net.Conn)) (address string) {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { serve(conn) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return listener.Addr().String()
}

var errNoCommand = errors.New("redistest: no command")

// ReadCommand reads one command as clients send it, an array of one or more bulk strings.
func ReadCommand(in *bufio.Reader) (words []string, err error) {
	count, err := readLength(in, '*')
	if err == nil && count < 1 {
		err = errNoCommand
	}
	for ; err == nil && count > 0; count-- {
		var size int
		if size, err = readLength(in, '$'); err == nil {
			word := make([]byte, size+len("\r\n"))
			_, err = io.ReadFull(in, word)
			words = append(words, string(word[:size]))
		}
	}
	return words, err
}

func readLength(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil || line[0] != kind {
		return 0, errors.Join(err, errNoCommand)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
