package redisproc

import (
	"errors"
	"net"
	"strconv"
	"testing"
)

func TestStopEndsEveryNode(t *testing.T) {
	t.Parallel()
	c := must(StartCluster(t.Context(), 2))(t)
	t.Cleanup(func() { c.Stop() })
	for range 2 {
		must(0, c.Stop())(t)
	}
	for _, n := range c.nodes {
		if !isGone(n.temp) {
			t.Errorf("%s is still there", n.temp)
		}
	}
}

func TestNodeOnATakenPortEndsBeforeItIsReady(t *testing.T) {
	t.Parallel()
	for _, offset := range []int{0, busOffset} {
		port := must(FreePort())(t)
		taken := must(net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port+offset))))(t)
		defer taken.Close()
		_, err := Start(t.Context(), Config{Port: port, Args: node{}.config().Args})
		if !errors.Is(err, errEnded) {
			t.Errorf("start with port %d taken: %v; want %v", port+offset, err, errEnded)
		}
	}
}
