package server

import (
	"bytes"
	"strconv"

	"remit/money"
)

// quickCharge reads the body of a charge as decode does, if it is written as nearly all are: one flat object of known
// names, strings without escapes, plain numbers. It returns false for every other body, good or bad: decode then says
// which. Reflection would take longer than all else that the service itself does for a charge.
func quickCharge(body []byte, request *chargeRequest) bool {
	rest := quickReader(body)
	if !rest.take('{') {
		return false
	}
	for first := true; !rest.take('}'); first = false {
		if !first && !rest.take(',') {
			return false
		}
		name, ok := rest.text()
		if !ok || !rest.take(':') || !request.quickField(string(name), &rest) {
			return false
		}
	}
	rest.space()
	return len(rest) == 0
}

// quickField reads one field that was not given before.
func (r *chargeRequest) quickField(name string, rest *quickReader) bool {
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

// quickReader is what is left of a body.
type quickReader []byte

func (q *quickReader) space() {
	for len(*q) > 0 && (((*q)[0] == ' ') || (*q)[0] == '\n' || (*q)[0] == '\t' || (*q)[0] == '\r') {
		*q = (*q)[1:]
	}
}

func (q *quickReader) take(c byte) bool {
	q.space()
	if len(*q) == 0 || (*q)[0] != c {
		return false
	}
	*q = (*q)[1:]
	return true
}

// text takes a string of printable ASCII without escapes.
func (q *quickReader) text() ([]byte, bool) {
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

// number takes what a number is made of; whether it is one is for its reader to say.
func (q *quickReader) number() []byte {
	q.space()
	end := 0
	for end < len(*q) && ((*q)[end] >= '0' && (*q)[end] <= '9' || bytes.IndexByte([]byte("+-.eE"), (*q)[end]) >= 0) {
		end++
	}
	number := (*q)[:end]
	*q = (*q)[end:]
	return number
}

// count takes a whole number from 1 to 9999999, which no other way of writing it exceeds.
func (q *quickReader) count() (int64, bool) {
	number := q.number()
	if len(number) == 0 || len(number) > 7 || number[0] < '1' || number[0] > '9' {
		return 0, false
	}
	count, err := strconv.ParseInt(string(number), 10, 64)
	return count, err == nil
}
