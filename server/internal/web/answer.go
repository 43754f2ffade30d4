package web

import (
	"github.com/go-json-experiment/json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/valyala/fasthttp"
	"remit/internal/event"
)

// Timestamp is a time in a response.
type Timestamp = event.Timestamp

// Answer writes 200 with the value as JSON.
func Answer(ctx *fasthttp.RequestCtx, value any) error {
	return AnswerStatus(ctx, fasthttp.StatusOK, value)
}

// AnswerOf is Answer with what show makes of a value, unless there is an error.
func AnswerOf[T, A any](ctx *fasthttp.RequestCtx, show func(T) A, value T, err error) error {
	if err != nil {
		return err
	}
	return Answer(ctx, show(value))
}

// AnswerEach is AnswerOf for a list.
func AnswerEach[T, A any](ctx *fasthttp.RequestCtx, show func(T) A, values []T, err error) error {
	if err != nil {
		return err
	}
	shown := make([]A, len(values))
	for i, value := range values {
		shown[i] = show(value)
	}
	return Answer(ctx, shown)
}

// AnswerNothing writes 204, unless there is an error.
func AnswerNothing(ctx *fasthttp.RequestCtx, err error) error {
	if err == nil {
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	}
	return err
}

// AnswerCreated writes 201 with the object and its location.
func AnswerCreated(ctx *fasthttp.RequestCtx, location string, value any) error {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, location)
	return AnswerStatus(ctx, fasthttp.StatusCreated, value)
}

// AnswerStatus writes this status with the value as JSON.
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
	ctx.Response.Header.SetCanonical(canonicalCacheControl, noStore)
}

// MetadataOf returns stored metadata for a response: {} for none.
func MetadataOf(stored string) jsontext.Value {
	if stored == "" {
		return jsontext.Value("{}")
	}
	return jsontext.Value(stored)
}
