package redisproc

import (
	"bytes"
	"io"
)

// tailSize bounds, in bytes, the output that an error quotes.
const tailSize = 1 << 10

// tail forwards a server's output and remembers the end of it. Call String only once
// the process has ended.
type tail struct {
	log  io.Writer // nil discards
	kept []byte
}

// Write never fails: a log that cannot be written must not stop the server.
func (t *tail) Write(p []byte) (int, error) {
	if t.log != nil {
		t.log.Write(p)
	}
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - tailSize; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// String returns the last lines, in a form that continues an error's message.
func (t *tail) String() string {
	lines := t.kept
	if len(lines) == tailSize {
		_, lines, _ = bytes.Cut(lines, []byte("\n")) // the first line may have lost its beginning
	}
	lines = bytes.TrimSpace(lines)
	if len(lines) == 0 {
		return ""
	}
	return "; it printed last:\n" + string(lines)
}
