package redisproc

import (
	"net"
	"strconv"
	"testing"
)

func TestStopEndsEverySentinel(t *testing.T) {
	t.Parallel()
	port := must(FreePort())(t)
	primary := net.JoinHostPort(loopback, strconv.Itoa(port))
	start(t, Config{Port: port})
	start(t, Config{Port: must(FreePort())(t), ReplicaOf: primary})
	sentinels := must(StartSentinels(t.Context(), 2, primary))(t)
	must(0, sentinels.Stop())(t)
	for _, s := range sentinels.Servers() {
		if !isGone(s.temp) {
			t.Errorf("%s is still there", s.temp)
		}
	}
}
