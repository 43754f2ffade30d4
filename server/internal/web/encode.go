package web

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

// The responses of the hot paths are written without reflection, which would take a third of the service's own time for a
// charge. Tests compare each with the output of the encoder.

// AnswerSize is enough for the response to a charge, and for a session with little metadata, so that it is written on the
// stack.
const AnswerSize = 640

// AnswerWritten writes 200 with a body that is already JSON.
func AnswerWritten(ctx *fasthttp.RequestCtx, body []byte) error {
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.SetBody(body) // copies it
	return nil
}

// AnswerList writes 200 with an array of what write appends for each item. It writes the body where it will be sent from.
func AnswerList[T any](ctx *fasthttp.RequestCtx, items []T, write func(Object, T) (Object, error)) error {
	room := Object(make([]byte, 0, AnswerSize))
	separator := byte('[')
	for _, item := range items {
		written, err := write(append(room[:0], separator), item)
		if err != nil {
			ctx.Response.ResetBody()
			return err
		}
		ctx.Response.AppendBody(written)
		room, separator = written, ','
	}
	if len(items) == 0 {
		ctx.Response.AppendBody([]byte{'['})
	}
	ctx.Response.AppendBody([]byte{']'})
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(fasthttp.StatusOK)
	return nil
}

// Object is a JSON object being written. Names come with their quotes, colon and comma.
type Object []byte

// ID writes an id.
func (o Object) ID(name string, id uuid.UUID) Object {
	o = append(append(o, name...), '"')
	return append(redisstore.AppendID(o, id), '"')
}

// Plain writes text that needs no escaping, such as a status or a scope.
func (o Object) Plain(name, text string) Object {
	o = append(append(o, name...), '"')
	return append(append(o, text...), '"')
}

// Text writes any text. It returns an error for one that is not UTF-8.
func (o Object) Text(name, text string) (Object, error) {
	return jsontext.AppendQuote(append(o, name...), text)
}

// Plains writes texts that need no escaping.
func (o Object) Plains(name string, texts []string) Object {
	o = append(append(o, name...), '[')
	for i, text := range texts {
		if i > 0 {
			o = append(o, ',')
		}
		o = o.Plain("", text)
	}
	return append(o, ']')
}

// Percents writes whole numbers.
func (o Object) Percents(name string, percents []int) Object {
	o = append(append(o, name...), '[')
	for i, percent := range percents {
		if i > 0 {
			o = append(o, ',')
		}
		o = strconv.AppendInt(o, int64(percent), 10)
	}
	return append(o, ']')
}

// Number writes a whole number.
func (o Object) Number(name string, n int64) Object {
	return strconv.AppendInt(append(o, name...), n, 10)
}

// Amount writes an exact value in USD.
func (o Object) Amount(name string, m money.MicroUSD) Object {
	return m.AppendTo(append(o, name...))
}

// Time writes a time.
func (o Object) Time(name string, t Timestamp) Object {
	o = append(append(o, name...), '"')
	return append(Object(t.AppendTo(o)), '"')
}

// TextOrNull writes any text, and null for "".
func (o Object) TextOrNull(name, text string) (Object, error) {
	if text == "" {
		return append(append(o, name...), "null"...), nil
	}
	return o.Text(name, text)
}

// IDOrNull writes an id, and null for uuid.Nil.
func (o Object) IDOrNull(name string, id uuid.UUID) Object {
	if id == uuid.Nil {
		return append(append(o, name...), "null"...)
	}
	return o.ID(name, id)
}
