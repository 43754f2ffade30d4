package web

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/valyala/fasthttp"
)

// Timestamp is a time in a response: RFC 3339, UTC, milliseconds, Z.
type Timestamp time.Time

const TimestampLayout = "2006-01-02T15:04:05.000Z"

// AppendText implements encoding.TextAppender.
func (t Timestamp) AppendText(text []byte) ([]byte, error) { return t.Append(text), nil }

// Append is time.AppendFormat for this layout, which costs five times as much.
func (t Timestamp) Append(text []byte) []byte {
	at := time.Time(t).UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 {
		return at.AppendFormat(text, TimestampLayout)
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
func (t Timestamp) IsZero() bool { return time.Time(t).IsZero() }

// Answer writes 200 with the value as JSON.
func Answer(ctx *fasthttp.RequestCtx, value any) error {
	return AnswerStatus(ctx, fasthttp.StatusOK, value)
}

// AnswerCreated writes 201 with the object and its location.
func AnswerCreated(ctx *fasthttp.RequestCtx, location string, value any) error {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, location)
	return AnswerStatus(ctx, fasthttp.StatusCreated, value)
}

func AnswerStatus(ctx *fasthttp.RequestCtx, status int, value any) error {
	body, err := Encode(value)
	if err != nil {
		return err
	}
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
	return nil
}

// Encode returns a body.
func Encode(value any) ([]byte, error) { return json.Marshal(value) }

// KeepFromCaches forbids storing a response that carries a credential.
func KeepFromCaches(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(CanonicalCacheControl, noStore)
}

// MetadataOf returns stored metadata for a response: {} for none.
func MetadataOf(stored string) jsontext.Value {
	if stored == "" {
		return jsontext.Value("{}")
	}
	return jsontext.Value(stored)
}
