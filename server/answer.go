package server

import (
	"github.com/go-json-experiment/json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/valyala/fasthttp"
	"remit/internal/event"
)

// timestamp is a time in a response.
type timestamp = event.Timestamp

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
