package redisclient

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// awaitDialing waits until go-redis looks in the background for a server that is away, or until it does not.
func awaitDialing(t *testing.T, wanted bool) {
	t.Helper()
	stacks := make([]byte, 4<<20)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), ").tryDial(") == wanted {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("dialing in the background: %v", !wanted)
		}
	}
}

// go-redis dials a server that is away once a second, in the background. It stops within a second or two of Close, which does not
// wait for it: a program that stops should not. Not parallel, because other tests have servers that are away too.
func TestAClosedClientDialsNoMore(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	url := "redis://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := must(Open(Config{URL: url, Prefix: "remit:", MarkWrite: testMark}))(t)
	for range 2 * poolSize {
		if c.Ping(t.Context()) == nil {
			t.Fatal("a server listens")
		}
	}
	awaitDialing(t, true)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	awaitDialing(t, false)
}
