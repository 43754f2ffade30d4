package wire

import "bytes"

// events reads a stream of server-sent events in pieces of any size (WHATWG HTML §9.2.6). Only data matters here.
type events struct {
	most     int // bytes that are kept of one event; an event that has more is passed on and not read
	line     []byte
	begun    bool // the line has a character, which need not be kept
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

// end ends a stream whose last event need not be followed by an empty line: some servers omit it.
func (e *events) end() { e.write([]byte("\n\n")) }

func (e *events) keep(text []byte) {
	e.begun = e.begun || len(text) > 0
	if e.tooLong || len(e.line)+len(e.data)+len(text) > e.most {
		e.tooLong, e.line, e.data = true, nil, nil
		return
	}
	e.line = append(e.line, text...)
}

func (e *events) endLine() {
	line, isBlank := e.line, !e.begun
	e.line, e.begun = e.line[:0], false
	if isBlank {
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
