package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func newTextLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func TestTheAccessLogTellsWhatTheFlagsSay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want []string // paths of routes, of 5 × /healthz
	}{
		"nothing is said":  {nil, []string{"/healthz"}}, // the first of a hundred
		"all":              {[]string{"--access-log=all"}, []string{"/healthz", "/healthz", "/healthz", "/healthz", "/healthz"}},
		"every second":     {[]string{"--access-log-every=2"}, []string{"/healthz", "/healthz", "/healthz"}},
		"only what failed": {[]string{"--access-log-every=0"}, nil},
		"off":              {[]string{"--access-log=off"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listen := freePort(t)
			p := start(t, []string{"PATH=" + t.TempDir(), "REMIT_LISTEN=127.0.0.1:" + listen}, append(test.args, "--log-format=json")...)
			p.url = "http://127.0.0.1:" + listen
			waitFor(t, func() bool { return strings.Contains(p.stdout.String(), "Try it") })
			for range 5 {
				p.get(t, "/healthz")
			}
			p.stopWell(t)
			var told []string
			for line := range strings.Lines(p.stderr.String()) {
				var entry struct{ Msg, Route string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatalf("no JSON: %s", line)
				}
				if entry.Msg == "request" {
					told = append(told, entry.Route)
				}
			}
			if fmt.Sprint(told) != fmt.Sprint(test.want) {
				t.Errorf("it tells of %v, want %v", told, test.want)
			}
		})
	}
}

// stuckWriter writes nothing until it is let go.
type stuckWriter struct {
	entered chan struct{}
	free    chan struct{}
	bytes.Buffer
}

func (w *stuckWriter) Write(line []byte) (int, error) {
	select {
	case w.entered <- struct{}{}:
	default:
	}
	<-w.free
	return w.Buffer.Write(line)
}

func TestLinesThatNobodyTakesHoldNobodyUpAndAreCounted(t *testing.T) {
	t.Parallel()
	w := &stuckWriter{entered: make(chan struct{}, 1), free: make(chan struct{})}
	q := newLineQueue(w)
	fmt.Fprintln(q, "first")
	<-w.entered
	const beyond = 10
	for i := range queuedLines + beyond {
		fmt.Fprintln(q, i)
	}
	close(w.free)
	if lost := q.end(time.Minute); lost != beyond {
		t.Errorf("%d lines are lost, want %d", lost, beyond)
	}
	written := strings.Split(strings.TrimSpace(w.String()), "\n")
	if len(written) != queuedLines+1 || written[0] != "first" || written[1] != "0" || written[queuedLines] != fmt.Sprint(queuedLines-1) {
		t.Errorf("%d lines are written, the last %q", len(written), written[len(written)-1])
	}
}

func TestTheEndDoesNotWaitForWhoTakesNoLines(t *testing.T) {
	t.Parallel()
	w := &stuckWriter{entered: make(chan struct{}, 1), free: make(chan struct{})}
	q := newLineQueue(w)
	for i := range 5 {
		fmt.Fprintln(q, i)
	}
	<-w.entered
	if lost := q.end(time.Millisecond); lost != 4 { // the first is being written
		t.Errorf("%d lines are lost, want 4", lost)
	}
	fmt.Fprintln(q, "late")
	if lost := q.lost.Load(); lost != 5 {
		t.Errorf("%d lines are lost, want 5", lost)
	}
	close(w.free)
	<-q.ended
}
