package client

import (
	"cmp"
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
	// idleLimit is shorter than the service's own idle timeout, so that the service does not close a connection under a request.
	idleLimit = 30 * time.Second
	// idlePerHost is the number of idle connections kept: as many as a busy agent host uses concurrently. With the two of
	// http.DefaultTransport nearly every call of such a host would open a connection.
	idlePerHost = 256
)

// Options are settings of a Client. The zero value works.
type Options struct {
	// HTTPClient sends the requests; nil: a default whose connections all Clients share. Redirects are never followed,
	// because they would send credentials elsewhere. Its Timeout must be more than 30 seconds for Events.
	HTTPClient *http.Client

	// MaxAttempts bounds the attempts of one call, including the first; 0: 4.
	MaxAttempts int

	// NoIdempotencyKeys sends writes without an idempotency key unless the caller gives one. The service then stores no
	// outcome for 24 hours. A write whose response is lost is not retried and returns ErrOutcomeUnknown.
	NoIdempotencyKeys bool
}

// Client calls one Remit service, through an Organization or an Agent.
type Client struct {
	base     string // without a slash at the end
	http     *http.Client
	attempts int
	keyless  bool
	issuer   issuerName
}

var defaultHTTP = &http.Client{Transport: &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
	TLSHandshakeTimeout:   dialTimeout,
	ForceAttemptHTTP2:     true,
	MaxIdleConnsPerHost:   idlePerHost,
	IdleConnTimeout:       idleLimit,
	ExpectContinueTimeout: time.Second,
	DisableCompression:    true, // responses are small, and their size is bounded as received
}}

// errNoScheme does not quote the URL, which may contain a password.
var errNoScheme = errors.New("remit: the base URL needs http:// or https:// before the host")

// New returns a Client for the base URL of a service, such as https://remit.example.com. It sends nothing.
func New(baseURL string, options Options) (*Client, error) {
	if !strings.Contains(baseURL, "://") {
		return nil, errNoScheme
	}
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
	httpClient := *cmp.Or(options.HTTPClient, defaultHTTP)
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &httpClient
	return c, nil
}

// Organization returns the organization of the API key. It sends nothing.
func (c *Client) Organization(apiKey string) *Organization {
	return &Organization{&caller{client: c, key: hide(apiKey)}}
}

// Agent returns the agent with this id and secret. It obtains its first tokens when it needs them. AgentWith takes other credentials.
func (c *Client) Agent(id, secret string) *Agent {
	return c.agent(id, exchangeSecret(id, AgentOptions{Secret: secret}), nil)
}

// CreateOrganization creates an organization. Only this response holds its API key.
func (c *Client) CreateOrganization(ctx context.Context, p OrganizationParams) (OrganizationInfo, error) {
	p.Metadata = asGiven(p.Metadata)
	creator := &caller{client: c, bearer: hide(string(p.BootstrapToken))}
	return decoded[OrganizationInfo](ctx, creator, c.keyed("/v1/organizations", p.IdempotencyKey, p))
}
