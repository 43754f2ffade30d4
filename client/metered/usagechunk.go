package metered

import (
	"bytes"
	"encoding/json"
)

// mostWithheld bounds the bytes of an event that are held back. An event that has more is no usage, and passes as it comes.
const mostWithheld = 1 << 20

// usageChunk takes the chunk with the usage out of a stream of chat completions whose caller did not ask for it: the event without
// choices. It holds each event back until that ends, and passes every other byte as it came; comments that open an event at once.
type usageChunk struct {
	event   []byte // of the event that has begun
	inLine  bool   // its last line has a character
	isLong  bool   // it passes
	afterCR bool   // an LF belongs to the line before
	ended   bool   // the CR before ended an event
	dropped bool   // it did not pass
	out     []byte
}

// next takes what comes, and returns what passes. At the end of the stream, that is all.
func (u *usageChunk) next(text []byte, isEnd bool) (passes []byte) {
	u.out = nil
	for len(text) > 0 {
		if u.afterCR && text[0] == '\n' {
			u.endCRLF()
			text = text[1:]
			continue
		}
		u.afterCR = false
		end := bytes.IndexAny(text, "\r\n")
		if end < 0 {
			u.keep(text)
			u.inLine = true
			break
		}
		u.inLine = u.inLine || end > 0
		u.keep(text[:end+1])
		u.afterCR, u.ended = text[end] == '\r', !u.inLine
		switch {
		case u.ended:
			u.endEvent()
		case !u.isLong && u.event[0] == ':': // a heartbeat that opens an event, of which no more has come
			u.pass()
		}
		u.inLine = false
		text = text[end+1:]
	}
	if isEnd { // servers may omit the last empty line
		u.endEvent()
	}
	return u.out
}

// endCRLF takes the LF after a CR.
func (u *usageChunk) endCRLF() {
	u.afterCR = false
	switch {
	case !u.ended && len(u.event) == 0: // after a comment that passed
		u.out = append(u.out, '\n')
	case !u.ended:
		u.keep([]byte{'\n'})
	case !u.dropped:
		u.out = append(u.out, '\n')
	}
}

func (u *usageChunk) keep(text []byte) {
	u.event = append(u.event, text...)
	if u.isLong = u.isLong || len(u.event) > mostWithheld; u.isLong {
		u.out = append(u.out, u.event...)
		u.event = u.event[:0]
	}
}

// endEvent passes the event, or of one that has the usage its comments.
func (u *usageChunk) endEvent() {
	u.dropped = !u.isLong && isUsageChunk(u.event)
	if u.dropped {
		u.event = comments(u.event)
	}
	u.pass()
	u.isLong = false
}

func (u *usageChunk) pass() {
	u.out = append(u.out, u.event...)
	u.event = u.event[:0]
}

func isUsageChunk(event []byte) (is bool) {
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
