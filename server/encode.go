package server

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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

// append writes a session. Its metadata is what the decoder has accepted, but may have white space.
func (a sessionAnswer) append(o object) (object, error) {
	o = o.id(`{"id":`, a.ID)
	o = o.id(`,"agent_id":`, a.Agent)
	o = o.plain(`,"status":`, string(a.Status))
	o = o.number(`,"max_actions":`, a.MaxActions)
	o = o.number(`,"action_count":`, a.ActionCount)
	o = o.amount(`,"max_value_usd":`, a.MaxValue)
	o = o.amount(`,"value_used_usd":`, a.ValueUsed)
	o = o.amount(`,"value_held_usd":`, a.ValueHeld)
	o = o.amount(`,"value_overage_usd":`, a.Overage)
	o = o.amount(`,"value_committed_usd":`, a.Committed)
	if a.MaxCommitted != nil {
		o = o.amount(`,"max_committed_usd":`, *a.MaxCommitted)
	}
	o = o.plains(`,"scopes":`, a.Scopes)
	o = append(o, `,"metadata":`...)
	var err error
	if o, err = jsontext.AppendFormat(o, a.Metadata); err != nil {
		return nil, err
	}
	o = o.time(`,"expires_at":`, a.Expires)
	o = o.time(`,"created_at":`, a.Created)
	if !a.Ended.IsZero() {
		o = o.time(`,"ended_at":`, a.Ended)
	}
	return append(o, '}'), nil
}
