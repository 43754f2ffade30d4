package faults

import (
	"flag"
	"net"
	"os"
	"testing"
)

var long = flag.Bool("long", false, "more rounds of every fault, and longer ones")

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// rounds is how often a scenario repeats its fault: few times in every test run, more often with -long.
func rounds(few int) int {
	if *long {
		return 5 * few
	}
	return few
}

// closingListener returns the address of a listener that reads a little of each connection, and closes it.
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
