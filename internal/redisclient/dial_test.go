package redisclient

import (
	"net"
	"runtime"
	"strings"
	"testing"
)

// dialsInTheBackground says whether go-redis looks for a server that is away.
func dialsInTheBackground() bool {
	stacks := make([]byte, 4<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), ").tryDial(")
}

// go-redis dials a server that is away once a second, in the background. It stops within a second or two of Close, which does not
// wait for it: a program that stops should not. Not parallel, because other tests have servers that are away too.
func TestAClosedClientDialsNoMore(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	url := "redis://" + listener.Addr().String()
	must(0, listener.Close())(t)
	c := must(Open(Config{URL: url, Prefix: "remit:", MarkWrite: testMark}))(t)
	for range 2 * poolSize {
		if c.Ping(t.Context()) == nil {
			t.Fatal("a server listens")
		}
	}
	eventually(t, "it dials", dialsInTheBackground)
	must(0, c.Close())(t)
	eventually(t, "it dials no more", func() bool { return !dialsInTheBackground() })
}
