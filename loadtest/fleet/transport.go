package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	callTimeout     = 5 * time.Second // to write a request, and again to read its answer
	dialTimeout     = 2 * time.Second
	idleConnection  = 5 * time.Second // shorter than the idle timeout of any server, which would close a connection under a request
	maxAnswerLength = 1 << 20         // bytes
)

// transport sends the SDK's requests over persistent connections, and records them in the recorder of their call. It uses
// the client of fasthttp, which takes less processor time from the service under test than that of net/http.
type transport struct {
	base  string // scheme, host and port
	hosts []*fasthttp.HostClient
	turn  atomic.Uint64 // the hosts take turns

	expired atomic.Pointer[map[string]bool] // access tokens that are invalidated before sending; nil: none
	refused atomic.Int64                    // requests with such a token
}

// expire invalidates the given access tokens in all requests from now on.
func (t *transport) expire(tokens map[string]bool) { t.expired.Store(&tokens) }

const bearer = "Bearer "

// invalidate returns the credential with a wrong signature if its access token has expired by expire.
func (t *transport) invalidate(credential string) (invalidated string, is bool) {
	tokens := t.expired.Load()
	access, found := strings.CutPrefix(credential, bearer)
	if tokens == nil || !found || !(*tokens)[access] {
		return credential, false
	}
	t.refused.Add(1)
	signature := strings.LastIndexByte(access, '.') + 1
	other := "A"
	if access[signature] == 'A' {
		other = "B"
	}
	return bearer + access[:signature] + other + access[signature+1:], true
}

// newTransport returns a transport for a base URL that hostPort accepts, with at most the given number of connections.
func newTransport(base string, connections int) *transport {
	host := newHost(base, connections)
	return &transport{base: "http://" + host.Addr, hosts: []*fasthttp.HostClient{host}}
}

func newHost(base string, connections int) *fasthttp.HostClient {
	addr, err := hostPort(base)
	dial := func(addr string) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return dialLoopback(addr)
	}
	return &fasthttp.HostClient{
		Addr:                addr,
		Dial:                dial,
		MaxConns:            connections,
		MaxIdleConnDuration: idleConnection,
		ConnPoolStrategy:    fasthttp.LIFO,
		ReadTimeout:         callTimeout,
		WriteTimeout:        callTimeout,
		MaxResponseBodySize: maxAnswerLength,

		SecureErrorLogMessage: true, // errors are printed, and answers carry credentials

		// No retries: a request repeated after a lost answer is charged twice, and the checks would blame the service. Both
		// settings are necessary: the first bounds the attempts, the second rejects each.
		MaxIdemponentCallAttempts: 1,
		RetryIfErr: func(*fasthttp.Request, int, error) (resetTimeout, retry bool) {
			return false, false
		},
	}
}

// dialLoopback connects, and closes the connection if the peer is not this machine, because the resolver decides what a name
// such as localhost means.
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

// RoundTrip sends the request once, and reads the whole answer before it returns. callTimeout bounds it; the context does
// not.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	sent := exchange{path: r.URL.Path, sent: body, began: time.Now()}
	if credential, invalidated := t.invalidate(r.Header.Get("Authorization")); invalidated {
		r, sent.invalidated = r.Clone(r.Context()), true
		r.Header.Set("Authorization", credential)
	}
	answer, header := t.call(r, body)
	sent.reply, sent.done = answer, time.Now()
	record(r.Context(), sent)
	if answer.err != nil {
		return nil, answer.err
	}
	return &http.Response{
		StatusCode: answer.status, Header: header, ContentLength: int64(len(answer.body)),
		Body: io.NopCloser(bytes.NewReader(answer.body)), Request: r,
	}, nil
}

func (t *transport) call(r *http.Request, body []byte) (reply, http.Header) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI(t.base + r.URL.RequestURI())
	req.Header.SetMethod(r.Method)
	for name, values := range r.Header {
		req.Header.Set(name, values[0])
	}
	req.SetBodyRaw(body)
	if err := t.hosts[t.turn.Add(1)%uint64(len(t.hosts))].Do(req, resp); err != nil {
		return reply{err: err}, nil
	}
	header := http.Header{}
	for name, value := range resp.Header.All() {
		header.Add(string(name), string(value))
	}
	// fasthttp reuses the response after its release, so copy its bytes.
	return reply{status: resp.StatusCode(), body: append([]byte(nil), resp.Body()...)}, header
}

// send sends a request with these headers and records it, as RoundTrip does. Empty headers are left out.
func (t *transport) send(ctx context.Context, method, path, body string, headers map[string]string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, t.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return t.RoundTrip(r)
}
