package web

import (
	"bytes"
	"strconv"
)

// FastReader is the rest of a body in the usual form of a hot request: one flat object of known names, strings without
// escapes, plain numbers. What it reads equals what decode reads. It refuses any other body, valid or not, which decode then
// reads. Reflection would take longer than everything else that the service itself does for a charge.
type FastReader []byte

// Object reads one object and the end of the body. It calls field behind the name of each member, to read its value.
func (q *FastReader) Object(field func(name []byte) bool) bool {
	if !q.take('{') {
		return false
	}
	for first := true; !q.take('}'); first = false {
		if !first && !q.take(',') {
			return false
		}
		name, ok := q.text()
		if !ok || !q.take(':') || !field(name) {
			return false
		}
	}
	q.space()
	return len(*q) == 0
}

// TextField reads the value of a member. It returns false when the member was given before.
func (q *FastReader) TextField(to *Optional[string]) bool {
	text, ok := q.text()
	ok = ok && !to.Given
	*to = Optional[string]{string(text), true}
	return ok
}

func (q *FastReader) space() {
	for len(*q) > 0 && (((*q)[0] == ' ') || (*q)[0] == '\n' || (*q)[0] == '\t' || (*q)[0] == '\r') {
		*q = (*q)[1:]
	}
}

func (q *FastReader) take(c byte) bool {
	q.space()
	if len(*q) == 0 || (*q)[0] != c {
		return false
	}
	*q = (*q)[1:]
	return true
}

// text reads a string of printable ASCII without escapes.
func (q *FastReader) text() ([]byte, bool) {
	if !q.take('"') {
		return nil, false
	}
	end := bytes.IndexByte(*q, '"')
	if end < 0 {
		return nil, false
	}
	text := (*q)[:end]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return nil, false
		}
	}
	*q = (*q)[end+1:]
	return text, true
}

// Number reads the characters of a number. Its caller parses them.
func (q *FastReader) Number() []byte {
	q.space()
	end := 0
	for end < len(*q) && ((*q)[end] >= '0' && (*q)[end] <= '9' || bytes.IndexByte([]byte("+-.eE"), (*q)[end]) >= 0) {
		end++
	}
	number := (*q)[:end]
	*q = (*q)[end:]
	return number
}

// Count reads a whole number from 1 to 9999999 in its only plain notation.
func (q *FastReader) Count() (int64, bool) {
	number := q.Number()
	if len(number) == 0 || len(number) > 7 || number[0] < '1' || number[0] > '9' {
		return 0, false
	}
	count, err := strconv.ParseInt(string(number), 10, 64)
	return count, err == nil
}
