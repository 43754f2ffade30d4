// Package outbound makes HTTP clients for URLs that tenants choose: those of webhooks and of key sets. They connect to public
// addresses of other machines only, follow no redirects, and use no proxy.
package outbound

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

const (
	// ConnectTime is how long a connection, and then its TLS handshake, may take.
	ConnectTime = 5 * time.Second

	maxResponseHeader = 16 << 10 // bytes
)

// NewTransport returns a transport that connects to public addresses only, unless allowPrivate is set. A resolver of nil is the
// default one.
func NewTransport(allowPrivate bool, resolver *net.Resolver) *http.Transport {
	dialer := &net.Dialer{Timeout: ConnectTime, KeepAlive: -1, Resolver: resolver}
	if !allowPrivate {
		dialer.Control = controlPublic(net.InterfaceAddrs)
	}
	return &http.Transport{
		Proxy:                  nil, // the environment's would connect in our place, to any address
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    ConnectTime,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true,
	}
}

// NewClient returns a client that follows no redirect: the redirect is the response.
func NewClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
