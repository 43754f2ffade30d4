package main

import (
	"io"
	"log/slog"

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

// requestLog is the access log; nil when there is none.
type requestLog struct {
	lines *lineQueue
	log   server.AccessLog
}

// accessLog returns the access log, written to w. Flush it after use.
func (f logFlags) accessLog(w io.Writer) *requestLog {
	if f.AccessLog == "off" {
		return nil
	}
	every := f.AccessLogEvery
	if f.AccessLog == "all" {
		every = 1
	}
	lines := newLineQueue(w)
	return &requestLog{lines, server.AccessLog{Log: slog.New(f.handler(lines)), Every: every}}
}

func (l *requestLog) config() server.AccessLog {
	if l == nil {
		return server.AccessLog{}
	}
	return l.log
}

// flush writes what waits, if it can be written soon, and says how many lines were lost.
func (l *requestLog) flush(log *slog.Logger) {
	if l == nil {
		return
	}
	if lost := l.lines.end(flushTime / 2); lost > 0 {
		log.Warn("lines of the access log were lost: they came faster than they could be written", "lines", lost)
	}
}
