package service

import (
	"io"
	"log"
	"log/slog"
	"os"
	"slices"

	"remit/internal/cli"
	"remit/server"
)

// logFlags say which messages and requests are logged, and in which format.
type logFlags struct {
	LogLevel       slog.Level `default:"info" help:"Lowest level that is logged: debug, info, warn or error."`
	LogFormat      string     `enum:"text,json" default:"text" help:"Format of log lines: text (key=value) or json."`
	AccessLog      string     `enum:"off,errors,all" default:"errors" help:"Which requests are logged: none (off), those with a 5xx response and a sample of the others (errors), or all."`
	AccessLogEvery uint64     `default:"100" help:"With --access-log=errors: log one in N of the other requests; 0 logs none of them."`
}

const logJSON = "json"

func (f logFlags) handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	if f.LogFormat == logJSON {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// asksForJSON reports whether a command line that could not be parsed requests logs in JSON.
func asksForJSON(args []string) bool {
	return os.Getenv("REMIT_LOG_FORMAT") == logJSON || slices.Contains(args, "--log-format="+logJSON)
}

// output is what a service writes to standard error and standard output. All lines pass through one queue in order, so a
// slow reader delays no request.
type output struct {
	log      *slog.Logger     // to standard error
	requests server.AccessLog // to standard error
	out      io.Writer        // standard output
	json     bool             // both streams carry JSON only
	queue    *lineQueue
}

// open returns the output. Flush it at the end.
func (f logFlags) open(stderr, stdout io.Writer) output {
	queue := newLineQueue(func(lines int64) {
		slog.New(f.handler(stderr)).Warn("log lines dropped: they came faster than they could be written", "lines", lines)
	})
	o := output{queue: queue, json: f.LogFormat == logJSON, out: queuedWriter{queue, stdout, queuedLines}}
	o.log = slog.New(f.handler(queuedWriter{queue, stderr, queuedLines}))
	if f.AccessLog == "off" {
		return o
	}
	o.requests = server.AccessLog{Log: slog.New(f.handler(queuedWriter{queue, stderr, queuedRequests})), Every: f.AccessLogEvery}
	if f.AccessLog == "all" {
		o.requests.Every = 1
	}
	return o
}

// flush writes the queued lines, unless that takes longer than flushTime/2.
func (o output) flush() { o.queue.end(flushTime / 2) }

// report writes why a command failed, unless that takes longer than flushTime/2, and returns the exit status.
func (f logFlags) report(err error) int {
	queue := newLineQueue(func(int64) {})
	defer queue.end(flushTime / 2)
	stderr := queuedWriter{queue, os.Stderr, queuedLines}
	if err == nil || f.LogFormat != logJSON {
		return cli.Report(stderr, err)
	}
	slog.New(f.handler(stderr)).Error("failed", "cause", err)
	return cli.Report(io.Discard, err)
}

// libraryLog receives what libraries write with package log. It shows how much, and not a byte of it: net/http's client quotes there up to
// 4 KiB that a receiver of webhooks sends unasked. The service's own lines take another way.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Write(line []byte) (int, error) {
	l.log.Debug("a library wrote a line, which is not shown", "bytes", len(line))
	return len(line), nil
}

// hideLibraries routes package log there for the rest of the process.
func hideLibraries(to *slog.Logger) { log.SetOutput(libraryLog{to}) }
