package main

import (
	"io"
	"log/slog"
	"os"
	"slices"

	"remit/cli"
	"remit/server"
)

// logFlags say what is logged, and how.
type logFlags struct {
	LogLevel       slog.Level `default:"info" help:"debug, info, warn or error."`
	LogFormat      string     `enum:"text,json" default:"text" help:"How log lines are written: text (key=value) or json."`
	AccessLog      string     `enum:"off,errors,all" default:"errors" help:"Which requests are logged: none (off), those that failed and a sample of the others (errors), all."`
	AccessLogEvery uint64     `default:"100" help:"With --access-log=errors: log every so-manieth of the requests that did not fail; 0: none."`
}

const logJSON = "json"

func (f logFlags) handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	if f.LogFormat == logJSON {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// asksForJSON reports whether a line that could not be parsed asks for logs in JSON.
func asksForJSON(args []string) bool {
	return os.Getenv("REMIT_LOG_FORMAT") == logJSON || slices.Contains(args, "--log-format="+logJSON)
}

// printed is where a service prints: all of it goes through one queue, in its order, and none of it holds anybody up.
type printed struct {
	log      *slog.Logger     // to standard error
	requests server.AccessLog // likewise
	out      io.Writer        // standard output
	json     bool             // nothing but JSON is printed, on neither
	queue    *lineQueue
}

// open returns where to print, to be flushed at the end.
func (f logFlags) open(stderr, stdout io.Writer) printed {
	queue := newLineQueue(func(lines int64) {
		slog.New(f.handler(stderr)).Warn("lines of the log were lost: they came faster than they could be written", "lines", lines)
	})
	p := printed{queue: queue, json: f.LogFormat == logJSON, out: queuedWriter{queue, stdout, queuedLines}}
	p.log = slog.New(f.handler(queuedWriter{queue, stderr, queuedLines}))
	if f.AccessLog == "off" {
		return p
	}
	p.requests = server.AccessLog{Log: slog.New(f.handler(queuedWriter{queue, stderr, queuedRequests})), Every: f.AccessLogEvery}
	if f.AccessLog == "all" {
		p.requests.Every = 1
	}
	return p
}

// flush writes what waits, if it can be written soon.
func (p printed) flush() { p.queue.end(flushTime / 2) }

// report writes why a command failed, if it can be written soon, and returns the status to exit with.
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
