package wire

import (
	"bytes"
	"encoding/json"
)

// mostWithheld bounds the bytes of an event that are held back. An event that has more is no usage, and passes as it comes, but for
// the end of its last line.
const mostWithheld = 1 << 20

// filter passes a stream of events on. It holds each event back until that ends, and passes every byte as it came; comments that open
// an event at once. It takes the chunk with the usage out of a stream of chat completions whose caller did not ask for it: the event
// without choices.
type filter struct {
	hides   bool   // the chunk with the usage
	event   []byte // of the event that has begun
	inLine  bool   // its last line has a character
	isLong  bool   // it passes as it comes
	afterCR bool   // an LF belongs to the line before
	ended   bool   // the CR before ended an event
	dropped bool   // it did not pass
	out     []byte
}

// next takes what comes, and returns what passes. At the end of the stream, that is all.
func (f *filter) next(text []byte, isEnd bool) (passes []byte) {
	f.out = f.out[:0]
	for len(text) > 0 {
		if f.afterCR && text[0] == '\n' {
			f.endCRLF()
			text = text[1:]
			continue
		}
		f.afterCR = false
		end := bytes.IndexAny(text, "\r\n")
		if end < 0 {
			f.keep(text)
			f.inLine = true
			break
		}
		f.inLine = f.inLine || end > 0
		f.keep(text[:end+1])
		f.afterCR, f.ended = text[end] == '\r', !f.inLine
		switch {
		case f.ended:
			f.endEvent()
		case !f.isLong && f.event[0] == ':': // a heartbeat that opens an event, of which no more has come
			f.pass()
		}
		f.inLine = false
		text = text[end+1:]
	}
	if isEnd { // servers may omit the last empty line
		f.endEvent()
	}
	return f.out
}

// endCRLF takes the LF after a CR.
func (f *filter) endCRLF() {
	f.afterCR = false
	switch {
	case !f.ended && len(f.event) == 0: // after a comment that passed
		f.out = append(f.out, '\n')
	case !f.ended:
		f.keep([]byte{'\n'})
	case !f.dropped:
		f.out = append(f.out, '\n')
	}
}

func (f *filter) keep(text []byte) {
	f.event = append(f.event, text...)
	if f.isLong = f.isLong || len(f.event) > mostWithheld; f.isLong {
		most := len(bytes.TrimRight(f.event, "\r\n"))
		f.out = append(f.out, f.event[:most]...)
		f.event = append(f.event[:0], f.event[most:]...)
	}
}

// endEvent passes the event, or of one that has the usage its comments.
func (f *filter) endEvent() {
	f.dropped = f.hides && !f.isLong && isUsageChunk(f.event)
	if f.dropped {
		f.event = comments(f.event)
	}
	f.pass()
	f.isLong = false
}

func (f *filter) pass() {
	f.out = append(f.out, f.event...)
	f.event = f.event[:0]
}

func isUsageChunk(event []byte) (is bool) {
	if !mayHaveUsage(event) {
		return false
	}
	e := events{most: len(event) + 1, dispatch: func(data []byte) {
		var chunk struct {
			Choices *[]json.RawMessage `json:"choices"`
			Usage   json.RawMessage    `json:"usage"`
			Error   json.RawMessage    `json:"error"`
		}
		is = json.Unmarshal(data, &chunk) == nil && chunk.Choices != nil && len(*chunk.Choices) == 0 &&
			bytes.HasPrefix(chunk.Usage, []byte("{")) && !isGiven(chunk.Error)
	}}
	e.write(event)
	e.end()
	return is
}

// mayHaveUsage spares nearly all events of a stream the decoding: they have no usage, or a null.
func mayHaveUsage(event []byte) bool {
	for {
		_, after, has := bytes.Cut(event, []byte(`"usage"`))
		if !has {
			return false
		}
		if value := bytes.TrimLeft(after, ": "); !bytes.HasPrefix(value, []byte("null")) {
			return true
		}
		event = after
	}
}

func comments(event []byte) (lines []byte) {
	for len(event) > 0 {
		end := bytes.IndexAny(event, "\r\n") + 1
		switch {
		case end == 0:
			end = len(event)
		case event[end-1] == '\r' && end < len(event) && event[end] == '\n':
			end++
		}
		if event[0] == ':' {
			lines = append(lines, event[:end]...)
		}
		event = event[end:]
	}
	return lines
}
