package server

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
)

// The answers of the hot paths are written by hand: reflection would be a third of what the service itself does for a
// charge. A test holds each equal to what the encoder makes of the same value.

// answerSize is enough for a charge's answer, so that it is written on the stack.
const answerSize = 384

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
	var text [36]byte
	hex.Encode(text[:8], id[:4])
	text[8] = '-'
	hex.Encode(text[9:13], id[4:6])
	text[13] = '-'
	hex.Encode(text[14:18], id[6:8])
	text[18] = '-'
	hex.Encode(text[19:23], id[8:10])
	text[23] = '-'
	hex.Encode(text[24:], id[10:])
	o = append(append(o, name...), '"')
	return append(append(o, text[:]...), '"')
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

// append writes a charge's answer.
func (a chargeAnswer) append(o object) object {
	o = o.id(`{"session_id":`, a.Session)
	o = o.number(`,"action_count":`, a.ActionCount)
	o = o.number(`,"max_actions":`, a.MaxActions)
	o = o.amount(`,"value_used_usd":`, a.ValueUsed)
	o = o.amount(`,"max_value_usd":`, a.MaxValue)
	o = o.amount(`,"value_held_usd":`, a.ValueHeld)
	o = o.number(`,"remaining_actions":`, a.RemainingActions)
	o = o.amount(`,"remaining_value_usd":`, a.RemainingValue)
	o = o.time(`,"expires_at":`, a.Expires)
	return append(o, '}')
}
