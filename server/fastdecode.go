package server

import (
	"bytes"
	"strconv"

	"remit/money"
)

// decodeFast reads the body of a charge in its usual form: one flat object of known names, strings without escapes, plain
// numbers. Then the result equals that of decode. It returns false for any other body, valid or not, which decode then
// reads. Reflection would take longer than everything else that the service itself does for a charge.
func decodeFast(body []byte, request *chargeRequest) bool {
	rest := fastReader(body)
	if !rest.take('{') {
		return false
	}
	for first := true; !rest.take('}'); first = false {
		if !first && !rest.take(',') {
			return false
		}
		name, ok := rest.text()
		if !ok || !rest.take(':') || !request.fastField(string(name), &rest) {
			return false
		}
	}
	rest.space()
	return len(rest) == 0
}

// fastField reads one field. It returns false when the field was given before.
func (r *chargeRequest) fastField(name string, rest *fastReader) bool {
	switch name {
	case "action_type":
		text, ok := rest.text()
		ok = ok && !r.ActionType.given
		r.ActionType = optional[string]{string(text), true}
		return ok
	case "scope":
		text, ok := rest.text()
		ok = ok && !r.Scope.given
		r.Scope = optional[string]{string(text), true}
		return ok
	case "value_usd":
		amount, err := money.Parse(rest.number())
		ok := err == nil && !r.Value.given
		r.Value = optional[money.MicroUSD]{amount, true}
		return ok
	case "count":
		count, ok := rest.count()
		ok = ok && !r.Count.given
		r.Count = optional[int64]{count, true}
		return ok
	}
	return false
}

// fastReader is the rest of a body.
type fastReader []byte

func (q *fastReader) space() {
	for len(*q) > 0 && (((*q)[0] == ' ') || (*q)[0] == '\n' || (*q)[0] == '\t' || (*q)[0] == '\r') {
		*q = (*q)[1:]
	}
}

func (q *fastReader) take(c byte) bool {
	q.space()
	if len(*q) == 0 || (*q)[0] != c {
		return false
	}
	*q = (*q)[1:]
	return true
}

// text reads a string of printable ASCII without escapes.
func (q *fastReader) text() ([]byte, bool) {
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

// number reads the characters of a number. Its caller parses them.
func (q *fastReader) number() []byte {
	q.space()
	end := 0
	for end < len(*q) && ((*q)[end] >= '0' && (*q)[end] <= '9' || bytes.IndexByte([]byte("+-.eE"), (*q)[end]) >= 0) {
		end++
	}
	number := (*q)[:end]
	*q = (*q)[end:]
	return number
}

// count reads a whole number from 1 to 9999999 in its only plain notation.
func (q *fastReader) count() (int64, bool) {
	number := q.number()
	if len(number) == 0 || len(number) > 7 || number[0] < '1' || number[0] > '9' {
		return 0, false
	}
	count, err := strconv.ParseInt(string(number), 10, 64)
	return count, err == nil
}
