package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"
)

const (
	attemptLimit = 10 * time.Second // for one attempt, from dialing to the last byte of the response
	maxResponse  = 1 << 20          // bytes
	userAgent    = "remit-go"
)

// semantics say whether a call may be repeated, in the terms of RFC 9110 §9.2.
type semantics int

const (
	safe       semantics = iota // changes nothing that the caller must know of; includes the calls for tokens
	idempotent                  // repeating it has no further effect, by its idempotency key or by its nature
	unsafe                      // repeating it repeats its effect
)

// call is one request and all attempts to send it.
type call struct {
	method    string
	path      string // with its query
	body      any    // nil: none
	semantics semantics
	form      func(context.Context) (url.Values, error) // the body of an OAuth endpoint, made for each attempt; nil: none
	key       string                                    // Idempotency-Key; empty: none
	wait      time.Duration                             // for which the service may hold the request back
	most      int64                                     // bytes of the response; 0: maxResponse
	empty     bool                                      // whether a success has no body (204)
	gone      bool                                      // whether not_found after an attempt in doubt means that this call deleted the object

	mayRetry func() bool // called before each attempt except the first; nil: always true
}

// keyed returns a POST with the given Idempotency-Key, or a random one.
func (c *Client) keyed(path, own string, body any) call {
	return c.withKey(call{method: http.MethodPost, path: path, body: body}, own)
}

// withKey makes q an idempotent write, by the given key or a random one of 128 bits.
func (c *Client) withKey(q call, own string) call {
	q.semantics, q.key = idempotent, own
	switch {
	case own != "":
	case c.keyless:
		q.semantics = unsafe
	default:
		q.key = randomKey()
	}
	return q
}

// randomKey has 32 characters, the minimum of endpoints that need no credential.
func randomKey() string {
	var bits [16]byte
	rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// caller sends calls with one credential, or none.
type caller struct {
	client *Client
	key    hidden      // an API key
	bearer hidden      // a token that is not renewed: a bootstrap token, or a token to verify
	tokens *tokens     // of an agent
	prover *prover     // proves the key that the tokens are bound to; nil: they are bound to none
	header http.Header // of all requests; nil: none
}

// do sends q, retries it as allowed, and decodes the response into the value behind into.
func (c *caller) do(ctx context.Context, q call, into any) error {
	_, err := c.doWithHeader(ctx, q, into)
	return err
}

// decoded is do, and returns the response as a value of a type.
func decoded[T any](ctx context.Context, c *caller, q call) (response T, err error) {
	err = c.do(ctx, q, &response)
	return response, err
}

// doWithHeader is do and also returns the response's header, nil if there is none. Pass a nil into for a response without a body.
func (c *caller) doWithHeader(ctx context.Context, q call, into any) (http.Header, error) {
	body, err := encode(q.body)
	if err != nil {
		return nil, fmt.Errorf("remit: %s %s: %w", q.method, q.path, err)
	}
	inDoubt := false // whether an attempt so far may have taken effect
	for attempt := 1; ; attempt++ {
		got, err := c.attempt(ctx, q, body)
		if err == nil {
			if into == nil {
				return got.header, nil
			}
			if err = decode(got.body, into); err == nil {
				return got.header, nil
			}
			err = &unreadable{err}
		}
		if q.gone && inDoubt && hasCode(err, codeNotFound) {
			return nil, nil
		}
		inDoubt = q.semantics != safe && (mayHaveHappened(err) || inDoubt && !resolvesDoubt(err))
		if attempt >= c.client.attempts || !q.isRetryable(err) || !pause(ctx, attempt, err) || q.mayRetry != nil && !q.mayRetry() {
			return nil, conclude(ctx, q, inDoubt, err)
		}
	}
}

func (q call) isSuccess(status int) bool {
	return status == http.StatusOK || status == http.StatusCreated || q.empty && status == http.StatusNoContent
}

// refusal returns the error of an error response.
func (q call) refusal(status int, header http.Header, body []byte) error {
	if q.form != nil {
		return oauthProblemFrom(status, header, body)
	}
	return problemFrom(status, header, body)
}

// response is an HTTP response whose body was read.
type response struct {
	header http.Header
	body   []byte
}

// attempt sends q. If the service rejects the agent's access token it sends q again with a new one: the service checks the
// token before it does anything else. The error is nil for 200 and 201, and for the 204 of a call without a response body.
func (c *caller) attempt(ctx context.Context, q call, body []byte) (response, error) {
	if c.tokens == nil {
		return c.deliver(ctx, q, body, c.bearer.reveal())
	}
	access, err := c.tokens.get(ctx, "")
	if err != nil {
		return response{}, noToken(err)
	}
	got, err := c.deliver(ctx, q, body, access)
	if !hasCode(err, codeInvalidToken) {
		return got, err
	}
	if access, err = c.tokens.get(ctx, access); err != nil {
		return response{}, noToken(err)
	}
	return c.deliver(ctx, q, body, access)
}

// deliver sends q, and once more with the service's nonce if it asks for one: it checks the proof before it does anything else.
func (c *caller) deliver(ctx context.Context, q call, body []byte, access string) (response, error) {
	got, err := c.send(ctx, q, body, access)
	if c.prover == nil || !hasCode(err, codeUseDpopNonce) {
		return got, err
	}
	return c.send(ctx, q, body, access)
}

// send sends one request and reads the response. Its error is a *Problem, a *lost, an *unreadable or that of a ctx that had
// ended.
func (c *caller) send(ctx context.Context, q call, body []byte, bearer string) (response, error) {
	if err := ctx.Err(); err != nil {
		return response{}, err
	}
	if q.form != nil {
		form, err := q.form(ctx)
		if err != nil {
			return response{}, err
		}
		body = []byte(form.Encode())
	}
	limited, cancel := context.WithTimeout(ctx, attemptLimit+q.wait)
	defer cancel()
	request, err := c.request(limited, q, body, bearer)
	if err != nil {
		return response{}, err
	}
	request, connections := countConnections(request)
	received, err := c.client.http.Do(request)
	if err != nil {
		return response{}, &lost{withoutURL(err)}
	}
	defer received.Body.Close()
	c.prover.learn(received.Header)
	most := cmp.Or(q.most, maxResponse)
	text, err := io.ReadAll(io.LimitReader(received.Body, most+1))
	if err != nil {
		return response{}, &lost{fmt.Errorf("reading the answer: %w", err)}
	}
	if int64(len(text)) > most {
		return response{}, &unreadable{fmt.Errorf("it is longer than %d MiB", most>>20)}
	}
	if !q.isSuccess(received.StatusCode) {
		err := q.refusal(received.StatusCode, received.Header, text)
		if proof, ok := err.(*InvalidProof); ok {
			if connections.Load() > 1 && proof.Code != codeUseDpopNonce {
				return response{}, &lost{errRepeatedProof}
			}
			proof.missing = request.Header.Get("DPoP") == ""
		}
		return response{}, err
	}
	return response{received.Header, text}, nil
}

// withoutURL unwraps the error in which http.Client repeats method and URL.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func (c *caller) request(ctx context.Context, q call, body []byte, bearer string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, q.method, c.client.base+q.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "application/json")
	switch {
	case q.form != nil:
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	case body != nil:
		request.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		request.Header.Set("Idempotency-Key", q.key)
	}
	if c.key != nil {
		request.Header.Set("X-API-Key", c.key.reveal())
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	maps.Copy(request.Header, c.header)
	return request, c.prover.prove(request, bearer)
}
