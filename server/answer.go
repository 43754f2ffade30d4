package server

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fasthttp"
)

// timestamp is a time as every answer writes it: RFC 3339, UTC, milliseconds, Z.
type timestamp time.Time

const timestampLayout = "2006-01-02T15:04:05.000Z"

// MarshalText implements encoding.TextMarshaler.
func (t timestamp) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, timestampLayout), nil
}

// IsZero says whether the time has not come.
func (t timestamp) IsZero() bool { return time.Time(t).IsZero() }

// answer writes 200 with the value as JSON.
func answer(ctx *fasthttp.RequestCtx, value any) error {
	return answerStatus(ctx, fasthttp.StatusOK, value)
}

// answerCreated writes 201 with the full object, and where it is.
func answerCreated(ctx *fasthttp.RequestCtx, location string, value any) error {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, location)
	return answerStatus(ctx, fasthttp.StatusCreated, value)
}

func answerStatus(ctx *fasthttp.RequestCtx, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
	return nil
}

// keepFromCaches marks an answer that carries a credential.
func keepFromCaches(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
}

// metadataOf returns stored metadata as it is answered: {} for none.
func metadataOf(stored string) jsontext.Value {
	if stored == "" {
		return jsontext.Value("{}")
	}
	return jsontext.Value(stored)
}
