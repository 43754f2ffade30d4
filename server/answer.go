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

// MarshalText implements encoding.TextMarshaler.
func (t timestamp) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, timestampLayout), nil
}

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
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
}

// metadataOf returns stored metadata for a response: {} for none.
func metadataOf(stored string) jsontext.Value {
	if stored == "" {
		return jsontext.Value("{}")
	}
	return jsontext.Value(stored)
}
