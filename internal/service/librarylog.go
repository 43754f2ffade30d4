package service

import (
	"log"
	"log/slog"
)

// libraryLog receives what libraries write with package log. It shows how much, and not a byte of it: net/http's client quotes there up to
// 4 KiB that a receiver of webhooks sends unasked. The service's own lines take another way.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Write(line []byte) (int, error) {
	l.log.Debug("a library wrote a line, which is not shown", "bytes", len(line))
	return len(line), nil
}

// hideLibraries routes package log there for the rest of the process.
func hideLibraries(to *slog.Logger) { log.SetOutput(libraryLog{to}) }
