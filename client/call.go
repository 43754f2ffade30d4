package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	attemptLimit = 10 * time.Second // for one attempt, from dialing to the last byte of the answer
	maxAnswer    = 1 << 20          // bytes
	userAgent    = "remit-go"
)

// effect is what sending a call twice would do.
type effect int

const (
	reads   effect = iota // nothing that anybody has to know of; the calls for tokens count as such
	repeats               // the same as sending it once, by its key or by its nature
	once                  // the same thing again
)

// call is one request, however often it is sent.
type call struct {
	method string
	path   string // with its query
	body   any    // nil: none
	effect effect
	key    string        // Idempotency-Key; empty: none
	wait   time.Duration // that the service may take on purpose

	mayGoOn func() bool // asked before each attempt but the first; nil: it may
}

func (q call) goesOn() bool { return q.mayGoOn == nil || q.mayGoOn() }

// keyed is a POST with the caller's own Idempotency-Key, or else a random one.
func (c *Client) keyed(path, own string, body any) call {
	return c.withKey(call{method: http.MethodPost, path: path, body: body}, own)
}

// withKey makes q a write that may be repeated: by the caller's own key, or else by a random one of 128 bits.
func (c *Client) withKey(q call, own string) call {
	q.effect, q.key = repeats, own
	switch {
	case own != "":
	case c.keyless:
		q.effect = once
	default:
		q.key = randomKey()
	}
	return q
}

// randomKey has 32 characters: the service takes no fewer where anybody may call.
func randomKey() string {
	var bits [16]byte
	rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// caller sends calls with one credential, or none.
type caller struct {
	client *Client
	key    hidden  // an API key
	bearer hidden  // a token that is not renewed: for creating organizations, or one to be verified
	tokens *tokens // an agent's
}

// do sends q until it is settled or given up, and decodes the answer into the value behind into.
func (c *caller) do(ctx context.Context, q call, into any) error {
	_, err := c.doWithHeader(ctx, q, into)
	return err
}

// doWithHeader is do, and returns the header of the answer. Of an answer without a body, into is nil.
func (c *caller) doWithHeader(ctx context.Context, q call, into any) (http.Header, error) {
	body, err := encode(q.body)
	if err != nil {
		return nil, fmt.Errorf("remit: %s %s: %w", q.method, q.path, err)
	}
	inDoubt := false // whether an attempt so far may have happened
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
		inDoubt = q.effect != reads && (mayHaveHappened(err) || inDoubt && !settles(err))
		if attempt >= c.client.attempts || !q.mayRepeat(err) || !pause(ctx, attempt, err) || !q.goesOn() {
			return nil, conclude(ctx, q, inDoubt, err)
		}
	}
}

// encode leaves <, > and & as they are, so that metadata comes back as it was given.
func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// decode reads an answer. null, which encoding/json takes for whatever is there already, is none.
func decode(text []byte, into any) error {
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return errors.New("it is null")
	}
	return json.Unmarshal(text, into)
}

// answer is an answer read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// attempt sends q once; an agent whose access token is refused, once more with a new one. The service refuses a token
// before it does anything, so that is no repetition. The error is nil for 200 and 201.
func (c *caller) attempt(ctx context.Context, q call, body []byte) (answer, error) {
	if c.tokens == nil {
		return c.send(ctx, q, body, c.bearer.reveal())
	}
	access, err := c.tokens.get(ctx, "")
	if err != nil {
		return answer{}, &noToken{err}
	}
	got, err := c.send(ctx, q, body, access)
	if !hasCode(err, codeInvalidToken) {
		return got, err
	}
	if access, err = c.tokens.get(ctx, access); err != nil {
		return answer{}, &noToken{err}
	}
	return c.send(ctx, q, body, access)
}

// send sends one request and reads its answer. Its error is a *Problem, a *lost, or that of a ctx that ended before.
func (c *caller) send(ctx context.Context, q call, body []byte, bearer string) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	limited, cancel := context.WithTimeout(ctx, attemptLimit+q.wait)
	defer cancel()
	request, err := c.request(limited, q, body, bearer)
	if err != nil {
		return answer{}, err
	}
	response, err := c.client.http.Do(request)
	if err != nil {
		return answer{}, &lost{withoutURL(err)}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return answer{}, &lost{fmt.Errorf("reading the answer: %w", err)}
	}
	if len(text) > maxAnswer {
		return answer{}, &unreadable{errors.New("it is longer than 1 MiB")}
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return answer{}, problemFrom(response.StatusCode, response.Header, text)
	}
	return answer{response.StatusCode, response.Header, text}, nil
}

// withoutURL is what http.Client wraps into an error that names method and URL, which are named elsewhere.
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
	if body != nil {
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
	return request, nil
}
