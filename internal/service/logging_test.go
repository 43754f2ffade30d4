package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/internal/token"
)

// Container runtimes mix both streams, and readers of JSON logs fail on any other line.
func TestJSONLogsAreTheOnlyOutput(t *testing.T) {
	t.Parallel()
	taken := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = taken.Close() })
	for name, test := range map[string]struct {
		args []string
		ends bool // by itself, and says why
		says string
	}{
		"serving":                    {[]string{"--log-format=json"}, false, `"msg":"listening"`},
		"a bootstrap token":          {[]string{"--log-format=json", "--listen=0.0.0.0:0"}, false, `{"bootstrap_token":"rmb_`},
		"an address that is taken":   {[]string{"--log-format=json", "--listen=" + taken.Addr().String()}, true, `cannot listen on`},
		"a flag that makes no sense": {[]string{"--log-format=json", "--refresh-grace=1h"}, true, `--refresh-grace must be`},
		"a gateway's config":         {[]string{"gateway", "--log-format=json", "--redis-url=redis://127.0.0.1:1", "--config=" + writeFile(t, "x: 1")}, true, `x is no field`},
		"an unknown flag":            {[]string{"--log-format=json", "--nonsense"}, true, `unknown flag --nonsense`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, []string{"PATH=" + t.TempDir()}, test.args...)
			becomes(t, "it says so", func() bool { return strings.Contains(p.Output(), test.says) })
			if !test.ends {
				p.stopWell(t)
			} else if err := p.Wait(); err == nil {
				t.Error("it ends with 0")
			}
			for line := range strings.Lines(p.Stdout() + p.Stderr()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("no JSON: %s", line)
				}
			}
		})
	}
}

func TestAccessLogFollowsItsFlags(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want int // lines of 5 requests
	}{
		"nothing is said":  {nil, 1}, // the first of a hundred
		"all":              {[]string{"--access-log=all"}, 5},
		"every second":     {[]string{"--access-log-every=2"}, 3},
		"only what failed": {[]string{"--access-log-every=0"}, 0},
		"off":              {[]string{"--access-log=off"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, []string{"PATH=" + t.TempDir()}, append(test.args, "--log-format=json")...).ready(t)
			for range 5 {
				p.get(t, "/healthz")
			}
			p.stopWell(t)
			if lines := strings.Count(p.Stderr(), `"route":"/healthz"`); lines != test.want {
				t.Errorf("it has %d lines of requests, want %d:\n%s", lines, test.want, p.Stderr())
			}
		})
	}
}

// stuckWriter blocks until free is closed.
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

// newStuckQueue returns a queue that blocks on its first line, a writer for requests and one for all other lines.
func newStuckQueue(w *stuckWriter) (q *lineQueue, requests, others io.Writer) {
	q = newLineQueue(func(lines int64) { fmt.Fprintln(&w.Buffer, "lost", lines) })
	requests, others = queuedWriter{q, w, queuedRequests}, queuedWriter{q, w, queuedLines}
	fmt.Fprintln(others, "first")
	<-w.entered
	return q, requests, others
}

func TestAFullLineQueueDropsAndCountsLines(t *testing.T) {
	t.Parallel()
	w := &stuckWriter{entered: make(chan struct{}, 1), free: make(chan struct{})}
	q, requests, others := newStuckQueue(w)
	const beyond = 10
	want := []string{"first"}
	for i := range queuedRequests + beyond {
		fmt.Fprintln(requests, "request", i)
		if i < queuedRequests {
			want = append(want, fmt.Sprint("request ", i))
		}
	}
	for i := range queuedLines - queuedRequests + beyond { // for which there is room still
		fmt.Fprintln(others, "other", i)
		if i < queuedLines-queuedRequests {
			want = append(want, fmt.Sprint("other ", i))
		}
	}
	close(w.free)
	q.end(time.Minute)
	want = append(want, fmt.Sprint("lost ", 2*beyond))
	if written := strings.Split(strings.TrimSpace(w.String()), "\n"); !slices.Equal(written, want) {
		t.Errorf("%d lines are written, the last %q; want %d", len(written), written[len(written)-1], len(want))
	}
}

func TestEndOfTheLineQueueTimesOut(t *testing.T) {
	t.Parallel()
	w := &stuckWriter{entered: make(chan struct{}, 1), free: make(chan struct{})}
	q, requests, others := newStuckQueue(w)
	fmt.Fprintln(others, "second")
	q.end(time.Millisecond)
	fmt.Fprintln(others, "late")
	fmt.Fprintln(requests, "late")
	close(w.free)
	<-q.ended
	if w.String() != "first\nsecond\nlost 2\n" {
		t.Errorf("it writes %q", w.String())
	}
}

// startUnread runs remit with a standard error that is a full pipe without a reader.
func startUnread(t *testing.T, env ...string) *program {
	t.Helper()
	reading, writing, err := os.Pipe()
	must(0, err)(t)
	t.Cleanup(func() { _, _ = reading.Close(), writing.Close() })
	must(0, writing.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))(t)
	for size := 4096; size > 0; size /= 2 { // what is left may be less than a page
		for err = nil; err == nil; {
			_, err = writing.Write(make([]byte, size))
		}
	}
	return startWriting(t, writing, append(env, "PATH="+t.TempDir()))
}

func TestABlockedStandardErrorDelaysNeitherRequestsNorTheStop(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t)
	listen := "127.0.0.1:" + freePort(t)
	p := startUnread(t, "REMIT_LISTEN="+listen, "REMIT_ACCESS_LOG=all", "REMIT_REDIS_URL=redis://"+redis.Addr())
	p.becomesReadable(t, listen, http.StatusOK)
	for range 20 {
		if status, body := p.get(t, "/nope"); status != http.StatusNotFound {
			t.Fatalf("%d %s", status, body)
		}
	}
	redis.SetError("LOADING") // a failure has a line of its own
	for range 20 {
		if status, body := p.get(t, "/v1/agents", "X-API-Key", token.NewAPIKey(uuid.New())); status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", status, body)
		}
	}
	p.stopWell(t)
}

func TestABlockedStandardErrorDelaysNoFailure(t *testing.T) {
	t.Parallel()
	taken := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = taken.Close() })
	p := startUnread(t, "REMIT_LISTEN="+taken.Addr().String())
	becomes(t, "it ends", func() bool { return !p.Runs() })
	if exit := p.State().ExitCode(); exit != 1 {
		t.Errorf("it ended with %d", exit)
	}
}
