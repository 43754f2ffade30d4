package redisclient

import "strings"

// A script whose calls are many may give one text instead of an array: its code and its values, each ended by a line break
// but the last. Lua makes one string of it in one step, and nothing of it is copied here. A value that may itself contain a
// line break stands last, and is read by Rest; an empty value is what nil is in an array.
//
// joined is such a text without its code. A reader most often asks for one value after the other, so it keeps its place.
type joined struct {
	text string
	is   bool // also of a text without values
	at   int  // a value
	from int  // where it begins
}

const lineBreak = '\n'

// rest returns the values from i on, as they are in the text.
func (j *joined) rest(i int) (string, bool) {
	if i < j.at {
		j.at, j.from = 0, 0
	}
	for ; j.at < i; j.at++ {
		end := strings.IndexByte(j.text[j.from:], lineBreak)
		if end < 0 {
			return "", false
		}
		j.from += end + 1
	}
	return j.text[j.from:], j.is
}

// value returns the value i.
func (j *joined) value(i int) (string, bool) {
	rest, has := j.rest(i)
	value, _, _ := strings.Cut(rest, string(lineBreak))
	return value, has
}

// number returns the value i, and false if it is not a plain number or has more digits than every int64 holds.
func (j *joined) number(i int) (int64, bool) {
	const digits = 18
	rest, has := j.rest(i)
	n, end := int64(0), 0
	for ; end < len(rest) && end < digits && rest[end] >= '0' && rest[end] <= '9'; end++ {
		n = 10*n + int64(rest[end]-'0')
	}
	if !has || end == 0 || end < len(rest) && rest[end] != lineBreak {
		return 0, false
	}
	if end < len(rest) {
		j.at, j.from = i+1, j.from+end+1
	}
	return n, true
}

// codeOf takes the code off a script's answer, and gives the reply the values.
func (r *Reply) codeOf(answer any) string {
	r.Values, r.joined = nil, joined{}
	switch answer := answer.(type) {
	case string:
		code, values, has := strings.Cut(answer, string(lineBreak))
		r.joined = joined{text: values, is: has}
		return code
	case []any:
		if len(answer) > 0 {
			r.Values = answer[1:]
			code, _ := answer[0].(string)
			return code
		}
	}
	return ""
}

// Has says whether there is a value i, which may be nil.
func (r *Reply) Has(i int) bool {
	_, has := r.joined.rest(i)
	return has || i < len(r.Values)
}

// Rest is Optional for the last value, which may contain anything.
func (r *Reply) Rest(i int) string {
	if rest, has := r.joined.rest(i); has {
		return rest
	}
	return r.Optional(i)
}

// From returns the values from i on as a reply of their own, with the error of this one.
func (r *Reply) From(i int) *Reply {
	if rest, has := r.joined.rest(i); has {
		return &Reply{joined: joined{text: rest, is: true}, Err: r.Err}
	}
	return &Reply{Values: r.Values[min(i, len(r.Values)):], Err: r.Err}
}

// answered says whether Redis has given an answer to a script's call.
func answered(answer any) bool {
	switch answer := answer.(type) {
	case string:
		return true
	case []any:
		return len(answer) > 0
	default:
		return false
	}
}
