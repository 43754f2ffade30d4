package web

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
)

const (
	HeaderIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"
	maxIdempotencyKey    = 255 // characters

	NotAnIdempotencyKey = "must have 1 to 255 visible characters"
	GuessableKey        = "must have at least 32 characters here, because it alone proves who repeats the request: make it random, such as a UUID"
)

// IdempotencyOf returns the idempotency of an operation on an object if the request has an Idempotency-Key, else nil. Call
// it after decoding the body, because a malformed request has no outcome. Two requests are the same when they ask for the
// same operation, however their JSON is spaced and ordered.
func IdempotencyOf(ctx *fasthttp.RequestCtx, operation string, object uuid.UUID) (*redisstore.Idempotency, error) {
	given := ctx.Request.Header.PeekAll(HeaderIdempotencyKey)
	if len(given) == 0 {
		return nil, nil
	}
	if len(given) > 1 {
		return nil, Invalid(HeaderIdempotencyKey, "is given twice")
	}
	if !IsIdempotencyKey(given[0]) {
		return nil, Invalid(HeaderIdempotencyKey, NotAnIdempotencyKey)
	}
	body, err := Canonical(ctx.Request.Body())
	if err != nil {
		return nil, err
	}
	return NewIdempotency(ctx, string(given[0]), operation, object, body), nil
}

const NotWithAKey = "cannot be given together with an Idempotency-Key: a dry run keeps nothing"

// IdempotencyUnlessDry is IdempotencyOf for an operation that may be a dry run, which takes no key.
func IdempotencyUnlessDry(ctx *fasthttp.RequestCtx, operation string, object uuid.UUID, dry bool) (*redisstore.Idempotency, error) {
	if dry && len(ctx.Request.Header.Peek(HeaderIdempotencyKey)) > 0 {
		return nil, Invalid("dry_run", NotWithAKey)
	}
	return IdempotencyOf(ctx, operation, object)
}

// NewIdempotency is IdempotencyOf for a key and a request that are already read.
func NewIdempotency(ctx *fasthttp.RequestCtx, key, operation string, object uuid.UUID, body []byte) *redisstore.Idempotency {
	h := sha256.New()
	h.Write([]byte(operation + "\x00"))
	h.Write(object[:])
	h.Write(body)
	o := &redisstore.Idempotency{Key: key, Fingerprint: [32]byte(h.Sum(nil))}
	InfoOf(ctx).Idempotency = o
	return o
}

// SealedIdempotency is IdempotencyOf for an operation whose response carries a credential. Only the request's own API key,
// which Redis never has, can open the stored response.
func SealedIdempotency(ctx *fasthttp.RequestCtx, operation string, object uuid.UUID, credential string) (*redisstore.Idempotency, error) {
	o, err := IdempotencyOf(ctx, operation, object)
	if o == nil || err != nil {
		return nil, err
	}
	o.Credential, o.Seal = credential, token.NewAnswerSeal(string(ctx.Request.Header.Peek(headerAPIKey)), o.Key)
	return o, nil
}

// CredentialOf returns the credential to answer with: the one made for this request, or that of the first one.
func CredentialOf(made string, o *redisstore.Idempotency) string {
	if o == nil {
		return made
	}
	return o.Credential
}

// IsIdempotencyKey says whether a key has 1 to 255 visible characters.
func IsIdempotencyKey(key []byte) bool {
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= maxIdempotencyKey
}

// Canonical returns a body without white space and with ordered members.
func Canonical(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return []byte("{}"), nil
	}
	value := jsontext.Value(body).Clone()
	err := value.Format(jsontext.ReorderRawObjects(true))
	return value, err
}

// AnsweredID returns the id of the request that the response belongs to: this one, or the earlier one that it repeats.
// The response to a replay is identical to the first one, so it carries the earlier id.
func AnsweredID(ctx *fasthttp.RequestCtx) string {
	if o := InfoOf(ctx).Idempotency; o != nil && o.Outcome.FirstRequest != "" {
		return o.Outcome.FirstRequest
	}
	return RequestID(ctx)
}
