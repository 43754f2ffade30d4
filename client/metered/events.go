package metered

import "bytes"

// maxEvent bounds the data of one event. What is longer is passed on and not read.
const maxEvent = maxBody

// events reads a stream of server-sent events in pieces of any size (WHATWG HTML §9.2.6). Only data matters here.
type events struct {
	line     []byte
	data     []byte
	hasData  bool
	tooLong  bool
	afterCR  bool // the last byte was CR: an LF after it ends no second line
	dispatch func(data []byte)
}

func (e *events) write(text []byte) {
	for len(text) > 0 {
		if e.afterCR && text[0] == '\n' {
			text = text[1:]
		}
		e.afterCR = false
		end := bytes.IndexAny(text, "\r\n")
		if end < 0 {
			e.keep(text)
			return
		}
		e.keep(text[:end])
		e.afterCR = text[end] == '\r'
		text = text[end+1:]
		e.endLine()
	}
}

func (e *events) keep(text []byte) {
	if len(e.line)+len(e.data)+len(text) > maxEvent {
		e.tooLong = true
		return
	}
	e.line = append(e.line, text...)
}

func (e *events) endLine() {
	line := e.line
	e.line = e.line[:0]
	if len(line) == 0 {
		if e.hasData && !e.tooLong {
			e.dispatch(e.data)
		}
		e.data, e.hasData, e.tooLong = e.data[:0], false, false
		return
	}
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	if !isData {
		return
	}
	if e.hasData {
		e.data = append(e.data, '\n')
	}
	e.data, e.hasData = append(e.data, bytes.TrimPrefix(value, []byte(" "))...), true
}
