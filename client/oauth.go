package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	oauthTokenPath = "/oauth2/token"
	metadataPath   = "/.well-known/oauth-authorization-server"

	assertionLifetime = time.Minute
	maxAssertion      = 8 << 10 // bytes

	grantClient   = "client_credentials"
	grantJWT      = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

	typeAssertion   = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
)

// oauthInvalidGrant is the code of a credential that the token endpoint refuses with 400 (RFC 6749 §5.2).
const oauthInvalidGrant = "invalid_grant"

// tokenForm is a request to the token endpoint (RFC 6749 §4), without what differs from one attempt to the next.
func tokenForm(grant, id string, scopes, resource []string) url.Values {
	form := url.Values{"grant_type": {grant}}
	if id != "" {
		form.Set("client_id", id)
	}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if len(resource) > 0 {
		form["resource"] = resource
	}
	return form
}

// exchangeSecret exchanges a secret. Only the OAuth endpoint narrows scopes.
func exchangeSecret(id string, o AgentOptions) func() call {
	secret := hide(o.Secret)
	if len(o.Scopes) > 0 {
		return withForm(func(context.Context) (url.Values, error) {
			form := tokenForm(grantClient, id, o.Scopes, o.Resource)
			form.Set("client_secret", secret.reveal())
			return form, nil
		})
	}
	return func() call {
		body := map[string]any{"agent_id": id, "secret": secret.reveal()}
		if len(o.Resource) > 0 {
			body["resource"] = o.Resource
		}
		return call{path: "/v1/auth/token", body: body}
	}
}

// withForm returns a call of the token endpoint. Each attempt makes a new form.
func withForm(form func(context.Context) (url.Values, error)) func() call {
	return func() call { return call{path: oauthTokenPath, form: form} }
}

// exchangeKey exchanges an assertion that the key signs (RFC 7523 §2.2). Each attempt signs a new one, because the
// service accepts each once.
func (c *Client) exchangeKey(id string, read func() (*Key, error), o AgentOptions) func() call {
	return withForm(func(ctx context.Context) (url.Values, error) {
		key, err := read()
		if err != nil {
			return nil, err
		}
		issuer, err := c.issuer.get(ctx, c)
		if err != nil {
			return nil, err
		}
		assertion, err := key.assertion(id, issuer, time.Now())
		if err != nil {
			return nil, err
		}
		form := tokenForm(grantClient, id, o.Scopes, o.Resource)
		form.Set("client_assertion_type", typeAssertion)
		form.Set("client_assertion", assertion)
		return form, nil
	})
}

// assertion returns a client assertion (RFC 7523 §3).
func (k *Key) assertion(id, audience string, now time.Time) (string, error) {
	header := struct {
		Algorithm Algorithm `json:"alg"`
		ID        string    `json:"kid,omitzero"`
		Type      string    `json:"typ"`
	}{k.algorithm, k.public.ID, "client-authentication+jwt"}
	return k.jwt(header, struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		ID       string `json:"jti"`
		Issued   int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}{id, id, audience, randomKey(), now.Unix(), now.Add(assertionLifetime).Unix()})
}

// exchangeAssertion exchanges a workload's token (RFC 7523 §2.1), which read reads from the source.
func exchangeAssertion(id, source string, read func(context.Context) (string, error), o AgentOptions) func() call {
	return withForm(func(ctx context.Context) (url.Values, error) {
		assertion, err := read(ctx)
		assertion = strings.TrimSpace(assertion)
		switch {
		case err != nil:
			return nil, &UnusableCredential{source, err}
		case strings.Count(assertion, ".") != 2 || len(assertion) > maxAssertion:
			return nil, &UnusableCredential{source, fmt.Errorf("it is no JWT of at most %d KiB", maxAssertion>>10)}
		}
		form := tokenForm(grantJWT, id, o.Scopes, o.Resource)
		form.Set("assertion", assertion)
		return form, nil
	})
}

// issuerName is the service's issuer, read once. The base URL need not be the issuer, but only the issuer's name makes an assertion
// one for this service.
type issuerName struct {
	mu   sync.Mutex
	name string
}

func (i *issuerName) get(ctx context.Context, c *Client) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.name != "" {
		return i.name, nil
	}
	var metadata struct {
		Issuer string `json:"issuer"`
	}
	err := (&caller{client: c}).do(ctx, call{method: http.MethodGet, path: metadataPath}, &metadata)
	if err == nil && metadata.Issuer == "" {
		err = errors.New("remit: GET " + metadataPath + ": the answer has no issuer")
	}
	if err == nil {
		i.name = metadata.Issuer
	}
	return metadata.Issuer, err
}
