package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"remit/internal/outbound"
)

const (
	requestTime     = 15 * time.Second // for connecting, sending and the response together
	maxResponseBody = 4 << 10          // bytes that are read, so that the connection may be used again
	idleConnections = 256
	idleTime        = 30 * time.Second
)

// sender sends requests to receivers. What a receiver answers is not kept, except the status.
type sender struct {
	client *http.Client
	most   time.Duration // for one request
}

// newSender returns a sender. A resolver of nil is the default one.
func newSender(allowPrivate bool, resolver *net.Resolver) sender {
	transport := outbound.NewTransport(allowPrivate, resolver)
	transport.MaxIdleConns = idleConnections
	transport.MaxIdleConnsPerHost = 2
	transport.IdleConnTimeout = idleTime
	return sender{most: requestTime, client: outbound.NewClient(transport)}
}

// keepIdle bounds the connections that wait for their next request.
func (s sender) keepIdle(most int) { s.client.Transport.(*http.Transport).MaxIdleConns = most }

// request is one attempt.
type request struct {
	url     string
	id      string // the delivery's
	body    []byte
	secrets [][]byte
}

// result is what came of an attempt.
type result struct {
	status int    // HTTP status of the answer, 0 for none
	failed string // why it failed, "" for a 2xx
	took   time.Duration
}

// send makes one attempt.
func (s sender) send(ctx context.Context, r request) result {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.most)
	defer cancel()
	status, err := s.post(ctx, r, began)
	return result{status: status, failed: whyFailed(status, err), took: time.Since(began)}
}

func (s sender) post(ctx context.Context, r request, now time.Time) (int, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("User-Agent", "Remit-Webhooks")
	Sign(post.Header, r.id, now, r.body, r.secrets)
	response, err := s.client.Do(post)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusSwitchingProtocols { // whose body is the connection, which ends with no deadline of ctx
		_, _ = io.CopyN(io.Discard, response.Body, maxResponseBody) // what follows is left unread, and ends the connection
	}
	return response.StatusCode, nil
}

// whyFailed names the cause of a failure. It says nothing that a receiver, a resolver or a certificate chose, because the tenant who reads
// deliveries must not learn of a network through it.
func whyFailed(status int, err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var network net.Error
	switch {
	case err == nil && status >= 200 && status <= 299:
		return ""
	case err == nil && status >= 300 && status <= 399:
		return "the receiver redirects, which is not followed"
	case err == nil:
		return "the receiver did not answer 2xx"
	case errors.Is(err, outbound.ErrPrivateAddress), errors.As(err, &name) && name.IsNotFound: // not which: names of the network behind would show
		return outbound.ErrPrivateAddress.Error()
	case errors.Is(err, outbound.ErrPort):
		return outbound.ErrPort.Error()
	case errors.As(err, &name):
		return "the host cannot be resolved"
	case errors.As(err, &certificate):
		return "the receiver's certificate is not valid"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "the receiver did not answer in time"
	}
	return "the connection failed"
}
