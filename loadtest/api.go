package main

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	callTimeout     = 5 * time.Second // for writing a request, and again for reading its answer
	dialTimeout     = 2 * time.Second
	idleConnection  = 5 * time.Second // shorter than any server's own patience, or a kept connection dies under a request
	maxAnswerLength = 1 << 20         // bytes
)

// client sends single requests to the service over kept connections.
type client struct {
	base string // scheme, host and port
	host *fasthttp.HostClient
}

// newClient makes a client for a base URL that hostPort accepts, with at most the given number of connections.
func newClient(base string, connections int) *client {
	addr, err := hostPort(base)
	dial := func(addr string) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return dialLoopback(addr)
	}
	return &client{base: "http://" + addr, host: &fasthttp.HostClient{
		Addr:                addr,
		Dial:                dial,
		MaxConns:            connections,
		MaxIdleConnDuration: idleConnection,
		ConnPoolStrategy:    fasthttp.LIFO,
		ReadTimeout:         callTimeout,
		WriteTimeout:        callTimeout,
		MaxResponseBodySize: maxAnswerLength,

		SecureErrorLogMessage: true, // errors are printed, and answers carry credentials

		// A request that is sent again after a lost answer is charged twice, and the books would blame the
		// service for it. Both settings are needed: the first bounds the attempts, the second says no to each.
		MaxIdemponentCallAttempts: 1,
		RetryIfErr: func(*fasthttp.Request, int, error) (resetTimeout, retry bool) {
			return false, false
		},
	}}
}

// dialLoopback connects, and hangs up if the far end turns out not to be this machine: a name such as localhost is
// whatever the resolver says.
func dialLoopback(addr string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	if far, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !far.IP.IsLoopback() {
		conn.Close()
		return nil, fmt.Errorf("%s is not this machine", addr)
	}
	return conn, nil
}

// credential is the header that says who calls.
type credential struct{ header, value string }

func apiKey(key string) credential   { return credential{"X-API-Key", key} }
func bearer(token string) credential { return credential{"Authorization", "Bearer " + token} }

// request is one call of the API.
type request struct {
	method string
	path   string
	auth   credential // zero: none
	body   []byte     // nil: none
}

// outcome is what the caller may conclude from a reply.
type outcome int

const (
	acknowledged outcome = iota // done, and the service said so
	refused                     // not done, and the service said why
	unknown                     // done or not: no answer, or one that leaves it open
)

// reply is an answer, or the failure to get one.
type reply struct {
	status int // 0: no answer
	body   []byte
	err    error // set when status is 0
}

// outcome takes only 200 and 201 for success and only 4xx for a refusal; all else proves nothing.
func (r reply) outcome() outcome {
	switch {
	case r.status == fasthttp.StatusOK, r.status == fasthttp.StatusCreated:
		return acknowledged
	case r.status >= 400 && r.status < 500:
		return refused
	}
	return unknown
}

// String describes the reply without the body of a success, which may hold a credential.
func (r reply) String() string {
	switch {
	case r.status == 0:
		return r.err.Error()
	case r.status >= 400:
		return fmt.Sprintf("%d %s", r.status, readProblem(r).Code)
	}
	return strconv.Itoa(r.status)
}

// call sends q once and waits for the answer.
func (c *client) call(q request) reply {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI(c.base + q.path)
	req.Header.SetMethod(q.method)
	if q.auth.header != "" {
		req.Header.Set(q.auth.header, q.auth.value)
	}
	if q.body != nil {
		req.Header.SetContentType("application/json")
		req.SetBodyRaw(q.body)
	}
	if err := c.host.Do(req, resp); err != nil {
		return reply{err: err}
	}
	// The response is used again for another call as soon as it is released, so its bytes are copied.
	return reply{status: resp.StatusCode(), body: append([]byte(nil), resp.Body()...)}
}
