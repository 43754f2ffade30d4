package fleet

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestParseConfig(t *testing.T) {
	got, err := parseConfig(strings.Fields("-agents 7 -sessions 3 -rate 0 -duration 250ms -addr http://[::1]:8080/ -transactions 30 -keys -scenario mixed"), io.Discard)
	want := config{agents: 7, sessions: 3, rate: 0, duration: 250 * time.Millisecond, addr: "http://[::1]:8080/", transactions: 30, keys: true, scenario: mixed, patience: closePatience}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if c, err := parseConfig(nil, io.Discard); err != nil || c.scenario != steady {
		t.Errorf("defaults: %+v, %v", c, err)
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for _, test := range []struct{ args, says string }{
		{"-agents 0", "-agents 0: must be from 1"},
		{"-agents 10001", "-agents 10001"},
		{"-sessions 0", "-sessions 0"},
		{"-sessions 101", "-sessions 101"},
		{"-agents 10000 -sessions 11", "110000 sessions"},
		{"-rate -1", "-rate -1"},
		{"-rate 200001", "-rate 200001"},
		{"-duration 99ms", "-duration 99ms"},
		{"-duration 61m", "-duration 1h1m0s"},
		{"-transactions -1", "-transactions -1"},
		{"-transactions 101", "from 0 to 100"},
		{"-scenario calm", "must be one of steady, burst, storm, mixed"},
		{"-scenario burst -rate 0", "needs a -rate"},
		{"-rate fast", "invalid value"},
		{"-pace 3", "not defined"},
		{"10s", `unexpected argument "10s"`},
		{"-addr 127.0.0.1:8080", "want a base URL"},
		{"-addr https://127.0.0.1:8080", "want a base URL"},
		{"-addr http://127.0.0.1:8080/v1", "scheme, host and port only"},
		{"-addr http://me@127.0.0.1:8080", "scheme, host and port only"},
		{"-addr http://192.0.2.1:8080", "not this machine"},
		{"-addr http://0.0.0.0:8080", "not this machine"},
		{"-addr http://127.0.0.1.example.com", "not this machine"},
		{"-addr http://localhost.example.com", "not this machine"},
		{"-session x", "needs the -addr"},
		{"-session x -addr http://127.0.0.1:1", "needs its agent in $REMIT_AGENT"},
		{"-session x -addr http://127.0.0.1:1 -scenario tree", "not with -scenario tree"},
		{"-session x -addr http://127.0.0.1:1 -report x.html", "not with -report"},
	} {
		t.Setenv("REMIT_SECRET", "word")
		agent := "a"
		if strings.Contains(test.says, "$REMIT_AGENT") {
			agent = ""
		}
		t.Setenv("REMIT_AGENT", agent)
		var stderr bytes.Buffer
		if _, err := parseConfig(strings.Fields(test.args), &stderr); err == nil || !strings.Contains(stderr.String(), test.says) {
			t.Errorf("%s: error %v, says %q, want %q", test.args, err, &stderr, test.says)
		}
	}
}

func TestHostPort(t *testing.T) {
	for addr, want := range map[string]string{
		"http://127.0.0.1:8080":          "127.0.0.1:8080",
		"http://127.9.9.9":               "127.9.9.9:80",
		"http://localhost:1/":            "localhost:1",
		"http://[::1]:8080":              "[::1]:8080",
		"http://[::ffff:127.0.0.1]:8080": "[::ffff:127.0.0.1]:8080",
	} {
		if got, err := hostPort(addr); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", addr, got, err, want)
		}
	}
}
