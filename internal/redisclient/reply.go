package redisclient

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// ErrReply means that a script or command answered with something it should not. What it wrote is unknown.
var ErrReply = errors.New("a script gave an unexpected reply")

// Reply is a script's answer without its code. Readers call the methods below and check Err once, at the end: it is the first
// value that was not what its reader expected.
type Reply struct {
	Values []any
	Err    error
	joined joined // instead of Values, if the answer is one text

	refusals Refusals // for replies that are part of this one
}

// Refusals gives the error for every code that a script can reply, except the codes of success, "ok" and "outcome".
type Refusals map[string]func(*Reply) error

// WritingRefusal is a refusal whose script has written. Like a success, it counts only once that write is confirmed.
type WritingRefusal struct{ Text string }

func (e *WritingRefusal) Error() string { return e.Text }

// Read takes a script's answer. Its error is the refusal that the code stands for, or ErrReply.
func (known Refusals) Read(r *Reply, answer any) error {
	r.refusals = known
	code := r.codeOf(answer)
	if code == "ok" || code == "outcome" {
		return nil
	}
	refusal, found := known[code]
	if !found {
		return fmt.Errorf("%w: code %q", ErrReply, code)
	}
	return refusal(r)
}

// Whole reads values that are a script's whole answer within another. Its error is the refusal that the answer's code stands
// for, or ErrReply.
func (r *Reply) Whole() (*Reply, error) {
	whole := &Reply{}
	if err := r.refusals.Read(whole, r.Values); err != nil {
		return nil, err
	}
	return whole, nil
}

// fail keeps an error, of which the first counts.
func (r *Reply) fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%w: "+format, append([]any{ErrReply}, args...)...)
	}
}

// Text reads a string.
func (r *Reply) Text(i int) string {
	if text, has := r.joined.value(i); has {
		return text
	}
	if i < len(r.Values) {
		if text, ok := r.Values[i].(string); ok {
			return text
		}
	}
	r.Err = fmt.Errorf("%w: no text at %d", ErrReply, i)
	return ""
}

// Optional is Text for a field that an object need not have: nil gives "".
func (r *Reply) Optional(i int) string {
	if i < len(r.Values) && r.Values[i] == nil {
		return ""
	}
	return r.Text(i)
}

// Number reads a count, an amount or a time: none of them is below 0.
func (r *Reply) Number(i int) int64 {
	if number, plain := r.joined.number(i); plain {
		return number
	}
	return r.Parse(r.Text(i))
}

// NumberOr0 is Number for something that may not have happened or been counted: nil and "" give 0.
func (r *Reply) NumberOr0(i int) int64 {
	text := r.Optional(i)
	if text == "" {
		return 0
	}
	return r.Parse(text)
}

// Parse is Number for a part of a text.
func (r *Reply) Parse(text string) int64 {
	number := r.parse(text)
	if number < 0 {
		r.fail("%d is below 0", number)
	}
	return number
}

func (r *Reply) parse(text string) int64 {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.fail("%q is no number", text)
	}
	return number
}

// Time reads a time in ms since 1970.
func (r *Reply) Time(i int) time.Time { return r.timeAt(r.Number(i)) }

// ParseTime is Time for a part of a text.
func (r *Reply) ParseTime(text string) time.Time { return r.timeAt(r.Parse(text)) }

// TimeOrZero is Time for something that may not have happened: nil, "" and 0 give the zero time.
func (r *Reply) TimeOrZero(i int) time.Time { return r.ParseTimeOrZero(r.Optional(i)) }

// ParseTimeOrZero is TimeOrZero for a part of a text.
func (r *Reply) ParseTimeOrZero(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	if ms := r.Parse(text); ms != 0 {
		return r.timeAt(ms)
	}
	return time.Time{}
}

// TimeSince reads how many ms after another time it was. The number may be negative, because clocks differ.
func (r *Reply) TimeSince(other time.Time, i int) time.Time {
	return r.timeAt(other.UnixMilli() + r.parse(r.Text(i)))
}

// MaxTime is the last ms since 1970 that RFC 3339 can write.
const MaxTime = 253402300799999

func (r *Reply) timeAt(ms int64) time.Time {
	if ms < 0 || ms > MaxTime {
		r.fail("no time is %d ms after 1970", ms)
	}
	return time.UnixMilli(ms)
}

// ID reads the 16 bytes of a UUID. In a joined reply it stands last.
func (r *Reply) ID(i int) uuid.UUID { return r.ParseID(r.Rest(i)) }

// ParseID is ID for a part of a text.
func (r *Reply) ParseID(text string) (id uuid.UUID) {
	if len(text) != len(id) {
		r.fail("%d bytes are no id", len(text))
	}
	copy(id[:], text)
	return id
}

// List reads an array. If there is none, the error is that of the Reply it returns.
func (r *Reply) List(i int) *Reply {
	if i < len(r.Values) {
		if values, ok := r.Values[i].([]any); ok {
			return &Reply{Values: values, refusals: r.refusals}
		}
	}
	return &Reply{Err: fmt.Errorf("%w: no array at %d", ErrReply, i)}
}
