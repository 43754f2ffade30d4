package event

import "time"

// Timestamp is a time in JSON, in events as in all other answers: RFC 3339, UTC, milliseconds, Z.
type Timestamp time.Time

const timestampLayout = "2006-01-02T15:04:05.000Z"

// AppendText implements encoding.TextAppender.
func (t Timestamp) AppendText(text []byte) ([]byte, error) { return t.AppendTo(text), nil }

// AppendTo is time.AppendFormat for this layout, which costs five times as much.
func (t Timestamp) AppendTo(text []byte) []byte {
	at := time.Time(t).UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 {
		return at.AppendFormat(text, timestampLayout)
	}
	hour, minute, second := at.Clock()
	text = digits(digits(text, year/100), year%100)
	text = digits(append(text, '-'), int(month))
	text = digits(append(text, '-'), day)
	text = digits(append(text, 'T'), hour)
	text = digits(append(text, ':'), minute)
	text = digits(append(text, ':'), second)
	ms := at.Nanosecond() / 1e6
	return append(digits(append(text, '.', byte('0'+ms/100)), ms%100), 'Z')
}

// digits appends a number below 100 as two digits.
func digits(text []byte, n int) []byte { return append(text, byte('0'+n/10), byte('0'+n%10)) }

// IsZero reports whether the time is not set; omitzero uses it.
func (t Timestamp) IsZero() bool { return time.Time(t).IsZero() }
