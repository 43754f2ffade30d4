package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	defaultAttempts = 4

	dialTimeout = 5 * time.Second
	// idleLimit is shorter than the service's own patience, or a kept connection could die under a request.
	idleLimit = 30 * time.Second
	// idlePerHost is how many connections wait for the next call: as many as an agent host makes at once. The two of
	// http.DefaultTransport would make nearly every call of a busy host open a connection.
	idlePerHost = 256
)

// Options are settings of a Client. The zero value works.
type Options struct {
	// HTTPClient sends the requests; nil: one whose connections all such Clients share. Redirects are never followed,
	// whatever it says, for they would carry credentials elsewhere. Its Timeout must leave 30 seconds to Events.
	HTTPClient *http.Client

	// MaxAttempts bounds how often one call is sent, the first time included; 0: 4 times.
	MaxAttempts int

	// NoIdempotencyKeys sends writes without a key unless the caller gives one. The service then keeps nothing for
	// 24 hours per write, but a lost answer stays in doubt: such a write is not retried.
	NoIdempotencyKeys bool
}

// Client is one Remit service. Organization and Agent are the two ways to call it.
type Client struct {
	base     string // without a slash at the end
	http     *http.Client
	attempts int
	keyless  bool
}

var defaultHTTP = &http.Client{Transport: &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
	TLSHandshakeTimeout:   dialTimeout,
	ForceAttemptHTTP2:     true,
	MaxIdleConnsPerHost:   idlePerHost,
	IdleConnTimeout:       idleLimit,
	ExpectContinueTimeout: time.Second,
	DisableCompression:    true, // answers are small, and their size is bounded as it arrives
}}

// New makes a Client for the base URL of a service, such as https://remit.example.com. It sends nothing.
func New(baseURL string, options Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, errors.New("remit: the base URL cannot be read") // the cause would quote it, with its password
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("remit: base URL %s: want https://host, with a path at most", u.Redacted())
	}
	c := &Client{
		base:     strings.TrimRight(u.String(), "/"),
		attempts: options.MaxAttempts,
		keyless:  options.NoIdempotencyKeys,
	}
	if c.attempts <= 0 {
		c.attempts = defaultAttempts
	}
	httpClient := *defaultHTTP
	if options.HTTPClient != nil {
		httpClient = *options.HTTPClient
	}
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &httpClient
	return c, nil
}

// Organization is the organization that holds the API key.
func (c *Client) Organization(apiKey string) *Organization {
	return &Organization{&caller{client: c, key: hide(apiKey)}}
}

// Agent is the agent with this id and secret. It gets its first tokens when it needs them.
func (c *Client) Agent(id, secret string) *Agent {
	held := &tokens{issuer: &caller{client: c}, agent: id, secret: hide(secret), wall: wallClock}
	return &Agent{id: id, caller: &caller{client: c, tokens: held}}
}

// CreateOrganization creates an organization. Its API key is in this answer only.
func (c *Client) CreateOrganization(ctx context.Context, p OrganizationParams) (OrganizationInfo, error) {
	var made OrganizationInfo
	creator := &caller{client: c, bearer: hide(string(p.BootstrapToken))}
	err := creator.do(ctx, c.keyed("/v1/organizations", p.IdempotencyKey, p), &made)
	return made, err
}
