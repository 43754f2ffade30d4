package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// callLimit is how long a caller waits for an answer. The service gives up on Redis after 3 s. The rest allows for a busy
// machine.
const callLimit = 10 * time.Second

// Request is a call to make.
type Request struct {
	Call         // what the history records of it in advance
	Method, Path string
	Body         any    // as JSON; nil for none
	APIKey       string // credential; empty for none
	Token        string // access token; empty for none
	ID           string // X-Request-Id; empty for none
	// Note returns the part of the answer's body to record. Nil records all of it.
	Note func(body []byte) string
}

// Caller makes calls and records each in a history. It is safe for concurrent use.
type Caller struct {
	history   *History
	transport *http.Transport
	client    *http.Client
}

// NewCaller returns a caller with connections of its own.
func NewCaller(h *History) *Caller {
	// Keep-alive connections, as real clients have them. No Proxy: the tests ignore the proxy of the environment.
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	return &Caller{h, transport, &http.Client{Transport: transport, Timeout: callLimit}}
}

// Close closes the connections that no call is using.
func (c *Caller) Close() { c.transport.CloseIdleConnections() }

// Do makes one call to the instance at the base URL, records it, and returns what was recorded and the answer's body.
func (c *Caller) Do(instance string, r Request) (Call, []byte) {
	made := r.Call
	made.Instance, made.Began = instance, c.history.Now()
	status, header, body, err := c.send(instance, r)
	made.Ended, made.Status, made.Replayed = c.history.Now(), status, header.Get("Idempotent-Replayed") == "true"
	switch {
	case err != nil:
		made.Outcome, made.Code = outcomeOf(err)
		made.Err = err.Error()
	default:
		made.Code = problemCode(status, body)
		made.Outcome = outcomeOfAnswer(status, made.Code)
		made.Answer = string(body)
		if made.Outcome == OK && r.Note != nil {
			made.Answer = r.Note(body)
		}
	}
	c.history.Add(made)
	return made, body
}

func (c *Caller) send(instance string, r Request) (status int, header http.Header, answer []byte, err error) {
	var body io.Reader
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return 0, nil, nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequest(r.Method, instance+r.Path, body)
	if err != nil {
		return 0, nil, nil, err
	}
	// Prevent retries by net/http: with GetBody it repeats a request that has an idempotency key when the answer is lost,
	// and the error of the retry ("connection refused") would hide that the first one was sent.
	request.GetBody = nil
	for name, value := range map[string]string{"X-API-Key": r.APIKey, "Idempotency-Key": r.Key, "X-Request-Id": r.ID} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.Token != "" {
		request.Header.Set("Authorization", "Bearer "+r.Token)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, nil, err // a partial answer proves nothing
	}
	return response.StatusCode, response.Header, answer, nil
}

// codeUnreachable is the code of a call without a connection.
const codeUnreachable = "unreachable"

// outcomeOf returns the outcome of a call without an answer. It is Refused only if no connection was made.
func outcomeOf(err error) (o Outcome, code string) {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return Refused, codeUnreachable
	}
	return Unknown, ""
}

func outcomeOfAnswer(status int, code string) Outcome {
	switch {
	case status < 300:
		return OK
	case status < 500, status == http.StatusServiceUnavailable && code == "unavailable":
		return Refused
	default:
		return Unknown
	}
}

func problemCode(status int, body []byte) string {
	var problem struct{ Code string }
	if status >= 300 {
		_ = json.Unmarshal(body, &problem) // a body that is not a problem has no code
	}
	return problem.Code
}
