package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// client sends requests to one instance, and checks the common rules on every response.
type client struct {
	t    *testing.T
	on   *instance
	http *http.Client
}

// in returns the client for a subtest.
func (c *client) in(t *testing.T) *client { return &client{t: t, on: c.on, http: c.http} }

// option sets a header of a request.
type option func(http.Header)

func header(name, value string) option {
	return func(h http.Header) { h[http.CanonicalHeaderKey(name)] = []string{value} }
}

// both sets two headers.
func both(a, b option) option { return func(h http.Header) { a(h); b(h) } }

func asKey(key string) option      { return header("X-API-Key", key) }
func asAgent(access string) option { return header("Authorization", "Bearer "+access) }

// raw is a body that is sent as it is.
type raw string

// fields is a JSON object: a body to send, or what an answer must be.
type fields map[string]any

func (c *client) get(path string, options ...option) *response {
	c.t.Helper()
	return c.ask(http.MethodGet, path, nil, options...)
}

func (c *client) post(path string, body any, options ...option) *response {
	c.t.Helper()
	return c.ask(http.MethodPost, path, body, options...)
}

func (c *client) patch(path string, body any, options ...option) *response {
	c.t.Helper()
	return c.ask(http.MethodPatch, path, body, options...)
}

func (c *client) put(path string, body any, options ...option) *response {
	c.t.Helper()
	return c.ask(http.MethodPut, path, body, options...)
}

func (c *client) delete(path string, options ...option) *response {
	c.t.Helper()
	return c.ask(http.MethodDelete, path, nil, options...)
}

// ask sends a request and fails the test if the response is incomplete or breaks the common rules.
func (c *client) ask(method, path string, body any, options ...option) *response {
	c.t.Helper()
	r, err := c.try(method, path, body, options...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	r.t = c.t
	return r
}

// try is ask for goroutines, which may not end the test. It returns a broken common rule as an error too.
func (c *client) try(method, path string, body any, options ...option) (*response, error) {
	text, err := encode(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(method, "http://"+c.on.address+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, set := range options {
		set(request.Header)
	}
	answered, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answered.Body.Close()
	r := &response{what: method + " " + path, status: answered.StatusCode, header: answered.Header}
	if r.body, err = io.ReadAll(answered.Body); err != nil {
		return nil, err
	}
	return r, r.checkCommonRules(method)
}

// getLater sends a GET whose answer takes long, and returns where that comes.
func (c *client) getLater(path string, options ...option) <-chan *response {
	answers := make(chan *response, 1)
	go func() {
		r, err := c.try(http.MethodGet, path, nil, options...)
		if err != nil {
			c.t.Error(err)
			r = &response{status: -1}
		}
		r.t = c.t
		answers <- r
	}()
	return answers
}

func encode(body any) ([]byte, error) {
	switch body := body.(type) {
	case nil:
		return nil, nil
	case raw:
		return []byte(body), nil
	default:
		return json.Marshal(body)
	}
}
