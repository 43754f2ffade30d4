package server

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/valyala/fasthttp"
)

// timestamp is a time in a response: RFC 3339, UTC, milliseconds, Z.
type timestamp time.Time

const timestampLayout = "2006-01-02T15:04:05.000Z"

// AppendText implements encoding.TextAppender.
func (t timestamp) AppendText(text []byte) ([]byte, error) { return t.append(text), nil }

// append is time.AppendFormat for this layout, which costs five times as much.
func (t timestamp) append(text []byte) []byte {
	at := time.Time(t).UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 {
		return at.AppendFormat(text, timestampLayout)
	}
	hour, minute, second := at.Clock()
	text = digits(digits(text, year/100), year%100)
	text = digits(append(text, '-'), int(month))
	text = digits(append(text, '-'), day)
	text = digits(append(text, 'T'), hour)
	text = digits(append(text, ':'), minute)
	text = digits(append(text, ':'), second)
	ms := at.Nanosecond() / 1e6
	return append(digits(append(text, '.', byte('0'+ms/100)), ms%100), 'Z')
}

// digits appends a number below 100 as two digits.
func digits(text []byte, n int) []byte { return append(text, byte('0'+n/10), byte('0'+n%10)) }

// IsZero reports whether the time is not set; omitzero uses it.
func (t timestamp) IsZero() bool { return time.Time(t).IsZero() }

// answer writes 200 with the value as JSON.
func answer(ctx *fasthttp.RequestCtx, value any) error {
	return answerStatus(ctx, fasthttp.StatusOK, value)
}

// answerCreated writes 201 with the object and its location.
func answerCreated(ctx *fasthttp.RequestCtx, location string, value any) error {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, location)
	return answerStatus(ctx, fasthttp.StatusCreated, value)
}

func answerStatus(ctx *fasthttp.RequestCtx, status int, value any) error {
	body, err := encode(value)
	if err != nil {
		return err
	}
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
	return nil
}

// encode returns a body.
func encode(value any) ([]byte, error) { return json.Marshal(value) }

// keepFromCaches forbids storing a response that carries a credential.
func keepFromCaches(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(canonicalCacheControl, noStore)
}

// metadataOf returns stored metadata for a response: {} for none.
func metadataOf(stored string) jsontext.Value {
	if stored == "" {
		return jsontext.Value("{}")
	}
	return jsontext.Value(stored)
}
