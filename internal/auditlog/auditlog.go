// Package auditlog verifies exports of an organization's events.
//
// An export is lines of JSON: one event in each, exactly as GET /v1/events returns it, in ascending order of seq. The last line
// may be {"checkpoint":"…"}, the JWS of GET /v1/events/checkpoint. Each event names the SHA-256 of the line before it, so who
// changes, drops, adds or swaps one breaks the chain; the checkpoint holds the last one fast. What is before the first event of
// an export is not in it: a feed keeps its last events only.
package auditlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"remit/internal/event"
)

// maxLine is the length of the longest line that is read.
const maxLine = 1 << 20

// Result is what a correct export contains.
type Result struct {
	First, Last int64  // numbers of its first and last event, 0 for none
	Hash        string // of the last event: SHA-256, in hex
	Checkpoint  string // the JWS at its end, "" for none; Verify has not looked at its signature
}

// BrokenError says where an export differs from what the service has written.
type BrokenError struct {
	Sequence int64 // of the event that was changed, is missing, or stands where it does not belong; 0 if the line has none
	Line     int   // from 1
	Fault    string
}

func (e *BrokenError) Error() string {
	if e.Sequence == 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Fault)
	}
	return fmt.Sprintf("event %d (line %d): %s", e.Sequence, e.Line, e.Fault)
}

// ErrTooLong means that a line is longer than any event.
var ErrTooLong = errors.New("a line is longer than any event")

// link is what the chain needs of an event.
type link struct {
	Sequence   int64  `json:"seq"`
	Previous   string `json:"previous_hash"`
	Checkpoint string `json:"checkpoint"`

	line int
	hash string
}

// Verify reads an export to its end. It returns a BrokenError for the first fault.
func Verify(export io.Reader) (Result, error) {
	lines := bufio.NewScanner(export)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var v verifier
	for number := 1; lines.Scan(); number++ {
		if err := v.add(number, lines.Bytes()); err != nil {
			return Result{}, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return Result{}, ErrTooLong
	} else if err != nil {
		return Result{}, err
	}
	return v.end()
}

// verifier holds back a break between two events until the next one shows which of them was changed.
type verifier struct {
	result Result
	last   *link // the event before
	broken *link // the event whose previous_hash is not that of the one before
}

func (v *verifier) add(number int, line []byte) error {
	if v.result.Checkpoint != "" {
		return &BrokenError{Line: number, Fault: "it follows the checkpoint, which ends an export"}
	}
	l, err := readLink(number, line)
	if err != nil {
		return err
	}
	if l.Checkpoint != "" {
		v.result.Checkpoint = l.Checkpoint
		return nil
	}
	if v.broken != nil {
		return v.blame(l)
	}
	if v.last != nil {
		if err := v.follows(l); err != nil {
			return err
		}
	} else {
		v.result.First = l.Sequence
	}
	v.last = l
	return nil
}

func readLink(number int, line []byte) (*link, error) {
	l := &link{line: number}
	if err := json.Unmarshal(line, l); err != nil {
		return nil, &BrokenError{Line: number, Fault: "it is no JSON of an event"}
	}
	if l.Checkpoint == "" && l.Sequence < 1 {
		return nil, &BrokenError{Line: number, Fault: "it has no seq"}
	}
	l.hash = event.Hash(bytes.TrimSuffix(line, []byte("\r")))
	return l, nil
}

// follows checks an event against the one before.
func (v *verifier) follows(l *link) error {
	switch want := v.last.Sequence + 1; {
	case l.Sequence > want:
		return &BrokenError{want, l.line, fmt.Sprintf("missing: event %d stands in its place", l.Sequence)}
	case l.Sequence < want:
		return &BrokenError{l.Sequence, l.line, fmt.Sprintf("out of order: it follows event %d", v.last.Sequence)}
	case l.Previous != v.last.hash:
		v.broken = l
	}
	return nil
}

// blame says which of two events was changed, when the chain is broken between them: the second if the next event does not know it
// either, else the first.
func (v *verifier) blame(next *link) error {
	if next != nil && next.Sequence == v.broken.Sequence+1 && next.Previous != v.broken.hash {
		return &BrokenError{v.broken.Sequence, v.broken.line, "changed: neither its neighbour before nor the one after fits"}
	}
	return &BrokenError{v.broken.Sequence - 1, v.broken.line - 1, "changed: the next event has another hash for it"}
}

func (v *verifier) end() (Result, error) {
	if v.broken != nil {
		return Result{}, v.blame(nil)
	}
	if v.last != nil {
		v.result.Last, v.result.Hash = v.last.Sequence, v.last.hash
	}
	return v.result, nil
}
