package main

import (
	"io"
	"log/slog"
	"os"

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

func (f logFlags) handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	if f.LogFormat == "json" {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// printed is where a service prints: all of it goes through one queue, in its order, and none of it holds anybody up.
type printed struct {
	log      *slog.Logger     // to standard error
	requests server.AccessLog // likewise
	out      io.Writer        // standard output
	queue    *lineQueue
}

// open returns where to print, to be flushed at the end.
func (f logFlags) open(stderr, stdout io.Writer) printed {
	queue := newLineQueue(func(lines int64) {
		slog.New(f.handler(stderr)).Warn("lines of the log were lost: they came faster than they could be written", "lines", lines)
	})
	p := printed{queue: queue, out: queuedWriter{queue, stdout, queuedLines}}
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
func report(err error) int {
	queue := newLineQueue(func(int64) {})
	defer queue.end(flushTime / 2)
	return cli.Report(queuedWriter{queue, os.Stderr, queuedLines}, err)
}
