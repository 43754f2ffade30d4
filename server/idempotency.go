package server

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"
	maxIdempotencyKey    = 255 // characters

	notAnIdempotencyKey = "must have 1 to 255 visible characters"
	guessableKey        = "must have at least 32 characters here, because it alone proves who repeats the request: make it random, such as a UUID"
)

// idempotencyOf returns the idempotency of an operation on an object if the request has an Idempotency-Key, else nil. Call
// it after decoding the body, because a malformed request has no outcome. Two requests are the same when they ask for the
// same operation, however their JSON is spaced and ordered.
func idempotencyOf(ctx *fasthttp.RequestCtx, operation string, object uuid.UUID) (*redisstore.Idempotency, error) {
	given := ctx.Request.Header.PeekAll(headerIdempotencyKey)
	if len(given) == 0 {
		return nil, nil
	}
	if len(given) > 1 {
		return nil, invalid(headerIdempotencyKey, "is given twice")
	}
	if !isIdempotencyKey(given[0]) {
		return nil, invalid(headerIdempotencyKey, notAnIdempotencyKey)
	}
	body, err := canonical(ctx.Request.Body())
	if err != nil {
		return nil, err
	}
	return newIdempotency(string(given[0]), operation, object, body), nil
}

const notWithAKey = "cannot be given together with an Idempotency-Key: a dry run keeps nothing"

// idempotencyUnlessDry is idempotencyOf for an operation that may be a dry run, which takes no key.
func idempotencyUnlessDry(ctx *fasthttp.RequestCtx, operation string, object uuid.UUID, dry bool) (*redisstore.Idempotency, error) {
	if dry && len(ctx.Request.Header.Peek(headerIdempotencyKey)) > 0 {
		return nil, invalid("dry_run", notWithAKey)
	}
	return idempotencyOf(ctx, operation, object)
}

// newIdempotency is idempotencyOf for a key and a request that are already read.
func newIdempotency(key, operation string, object uuid.UUID, body []byte) *redisstore.Idempotency {
	h := sha256.New()
	h.Write([]byte(operation + "\x00"))
	h.Write(object[:])
	h.Write(body)
	return &redisstore.Idempotency{Key: key, Fingerprint: [32]byte(h.Sum(nil))}
}

// sealedIdempotency is idempotencyOf for an operation whose response carries a credential. Only the request's own API key,
// which Redis never has, can open the stored response.
func sealedIdempotency(ctx *fasthttp.RequestCtx, operation string, object uuid.UUID, credential string) (*redisstore.Idempotency, error) {
	o, err := idempotencyOf(ctx, operation, object)
	if o == nil || err != nil {
		return nil, err
	}
	o.Credential, o.Seal = credential, token.NewAnswerSeal(string(ctx.Request.Header.Peek(headerAPIKey)), o.Key)
	return o, nil
}

// credentialOf returns the credential to answer with: the one made for this request, or that of the first one.
func credentialOf(made string, o *redisstore.Idempotency) string {
	if o == nil {
		return made
	}
	return o.Credential
}

func isIdempotencyKey(key []byte) bool {
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= maxIdempotencyKey
}

// canonical returns a body without white space and with ordered members.
func canonical(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return []byte("{}"), nil
	}
	value := jsontext.Value(body).Clone()
	err := value.Format(jsontext.ReorderRawObjects(true))
	return value, err
}

type firstRequest struct{}

// setFirstRequest says that the response belongs to an earlier request.
func setFirstRequest(ctx *fasthttp.RequestCtx, id string) { ctx.SetUserValue(firstRequest{}, id) }

// answeredID returns the id of the request that the response belongs to: this one, or the earlier one that it repeats.
func answeredID(ctx *fasthttp.RequestCtx) string {
	if first, ok := ctx.UserValue(firstRequest{}).(string); ok {
		return first
	}
	return requestID(ctx)
}
