package server

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

// The answers of the hot paths are written by hand: reflection would be a third of what the service itself does for a
// charge. A test holds each equal to what the encoder makes of the same value.

// answerSize is enough for a charge's answer, and for a session's without much metadata, so that it is written on the
// stack.
const answerSize = 640

// answerWritten writes 200 with a body that is JSON already.
func answerWritten(ctx *fasthttp.RequestCtx, body []byte) error {
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.SetBody(body) // a copy
	return nil
}

// object is a JSON object as it is written; names come with their quotes, colon and comma.
type object []byte

func (o object) id(name string, id uuid.UUID) object {
	o = append(append(o, name...), '"')
	return append(redisstore.AppendID(o, id), '"')
}

// plain writes texts that need no escapes: statuses and scopes have none.
func (o object) plain(name, text string) object {
	o = append(append(o, name...), '"')
	return append(append(o, text...), '"')
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

func (o object) number(name string, n int64) object {
	return strconv.AppendInt(append(o, name...), n, 10)
}

func (o object) amount(name string, m money.MicroUSD) object {
	return m.AppendTo(append(o, name...))
}

func (o object) time(name string, t timestamp) object {
	o = append(append(o, name...), '"')
	o = time.Time(t).UTC().AppendFormat(o, timestampLayout)
	return append(o, '"')
}
