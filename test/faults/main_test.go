package faults

import (
	"flag"
	"os"
	"testing"

	"remit/internal/redisproc"
	"remit/test/serviceproc"
	"remit/test/suite"
)

var repeats = flag.Int("repeats", 1, "how many times as often each scenario repeats its fault")

func TestMain(m *testing.M) {
	if os.Getenv(holderVariable) != "" {
		os.Exit(holdLease(os.Stdin, os.Stdout))
	}
	os.Exit(serviceproc.Tests{M: m, Race: suite.RaceDetector, End: removePreload}.Run())
}

func onRedis(t *testing.T, cfg redisproc.Config, setup Setup) (*Redis, *Scenario) {
	t.Helper()
	redis := StartRedis(t, cfg)
	setup.URL, setup.Servers = redis.URL(), []string{redis.Addr}
	return redis, New(t, setup)
}

// rounds is how often a scenario repeats its fault.
func rounds(few int) int { return few * *repeats }
