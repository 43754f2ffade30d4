package server

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"
	maxIdempotencyKey    = 255 // characters

	notAnIdempotencyKey = "must have 1 to 255 visible characters"
	guessableKey        = "must have at least 32 characters here: it is all that shows who caller again, so make it random, as a UUID is"
)

// once returns what makes the operation on the object happen once, if the request has an Idempotency-Key, else nil. Call
// it with the body decoded: what is not well-formed has no outcome. Requests are the same when they ask the same of the
// same, however their JSON is spaced and ordered.
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
	asked, err := canonical(ctx.Request.Body())
	if err != nil {
		return nil, err
	}
	return newIdempotency(string(given[0]), operation, object, asked), nil
}

// newIdempotency is once for a key and a request that are read already.
func newIdempotency(key, operation string, object uuid.UUID, asked []byte) *redisstore.Idempotency {
	h := sha256.New()
	h.Write([]byte(operation + "\x00"))
	h.Write(object[:])
	h.Write(asked)
	return &redisstore.Idempotency{Key: key, Fingerprint: [32]byte(h.Sum(nil))}
}

// sealedIdempotency is once for an operation that gives the organization's request a credential. A repeated answer can be opened
// with the request's own API key alone, which Redis never has.
func sealedIdempotency(ctx *fasthttp.RequestCtx, operation string, object uuid.UUID, credential string) (*redisstore.Idempotency, error) {
	o, err := idempotencyOf(ctx, operation, object)
	if o == nil || err != nil {
		return nil, err
	}
	o.Credential, o.Seal = credential, token.NewAnswerSeal(string(ctx.Request.Header.Peek(headerAPIKey)), o.Key)
	return o, nil
}

// answered returns the credential to answer with: the one that was made for this request, or that of the first.
func credentialOf(made string, o *redisstore.Idempotency) string {
	if o == nil {
		return made
	}
	return o.Credential
}

func isReplay(o *redisstore.Idempotency) bool { return o != nil && o.Replayed }

func isIdempotencyKey(key []byte) bool {
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= maxIdempotencyKey
}

// canonical returns a body without white space, its objects' members in order.
func canonical(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return []byte("{}"), nil
	}
	value := jsontext.Value(body).Clone()
	err := value.Format(jsontext.ReorderRawObjects(true))
	return value, err
}

// reportReplay says so when the outcome is that of an earlier request. Its body then has that request's id, and is the
// same to the letter.
func (s *Server) reportReplay(ctx *fasthttp.RequestCtx, idempotency *redisstore.Idempotency) {
	if idempotency == nil || idempotency.FirstRequest == "" {
		return
	}
	if idempotency.Replayed {
		s.metrics.replays.Inc()
		ctx.Response.Header.Set(headerReplayed, "true")
	}
	ctx.SetUserValue(firstRequest{}, idempotency.FirstRequest)
}

type firstRequest struct{}

// answeredID returns the id of the request that the answer is to: this one, or the one before that it repeats.
func answeredID(ctx *fasthttp.RequestCtx) string {
	if first, ok := ctx.UserValue(firstRequest{}).(string); ok {
		return first
	}
	return requestID(ctx)
}
