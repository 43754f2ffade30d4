package server

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

// answerSize is enough for the response to a charge, and for a session with little metadata, so that it is written on the
// stack.
const answerSize = 640

// answerWritten writes 200 with a body that is already JSON.
func answerWritten(ctx *fasthttp.RequestCtx, body []byte) error {
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.SetBody(body) // copies it
	return nil
}

// answerList writes 200 with an array of what write appends for each item. It writes the body where it will be sent from.
func answerList[T any](ctx *fasthttp.RequestCtx, items []T, write func(object, T) (object, error)) error {
	room := object(make([]byte, 0, answerSize))
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

// object is a JSON object being written. Names come with their quotes, colon and comma.
type object []byte

func (o object) id(name string, id uuid.UUID) object {
	o = append(append(o, name...), '"')
	return append(redisstore.AppendID(o, id), '"')
}

// plain writes text that needs no escaping, such as a status or a scope.
func (o object) plain(name, text string) object {
	o = append(append(o, name...), '"')
	return append(append(o, text...), '"')
}

// text writes any text. It returns an error for one that is not UTF-8.
func (o object) text(name, text string) (object, error) {
	return jsontext.AppendQuote(append(o, name...), text)
}

func (o object) plains(name string, texts []string) object {
	o = append(append(o, name...), '[')
	for i, text := range texts {
		if i > 0 {
			o = append(o, ',')
		}
		o = o.plain("", text)
	}
	return append(o, ']')
}

func (o object) percents(name string, percents []int) object {
	o = append(append(o, name...), '[')
	for i, percent := range percents {
		if i > 0 {
			o = append(o, ',')
		}
		o = strconv.AppendInt(o, int64(percent), 10)
	}
	return append(o, ']')
}

func (o object) number(name string, n int64) object {
	return strconv.AppendInt(append(o, name...), n, 10)
}

func (o object) amount(name string, m money.MicroUSD) object {
	return m.AppendTo(append(o, name...))
}

func (o object) time(name string, t timestamp) object {
	o = append(append(o, name...), '"')
	return append(object(t.AppendTo(o)), '"')
}

// textOrNull writes any text, and null for "".
func (o object) textOrNull(name, text string) (object, error) {
	if text == "" {
		return append(append(o, name...), "null"...), nil
	}
	return o.text(name, text)
}

// idOrNull writes an id, and null for uuid.Nil.
func (o object) idOrNull(name string, id uuid.UUID) object {
	if id == uuid.Nil {
		return append(append(o, name...), "null"...)
	}
	return o.id(name, id)
}
