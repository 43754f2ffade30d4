package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Verified is the agent of a valid access token.
type Verified struct {
	AgentID        string
	OrganizationID string
	Scopes         []string
	ActorID        string // the agent that delegated the token; empty: it is not delegated
	Thumbprint     string // of the key that the token is bound to; empty: it is a bearer token
}

// VerifyOptions say what a token must be good for. The zero value asks for a bearer token of the service itself.
type VerifyOptions struct {
	Scope    string // that it must have; empty: any
	Audience string // that it must be for (AgentOptions.Resource); empty: the service itself

	// Proof is the DPoP header of the request that came with the token, Method and URL are that request's. The service believes
	// these two from its trusted proxies only (--trusted-proxies).
	Proof  string
	Method string
	URL    string // as the client sees it
}

// Verify checks an access token as a proxy does, and charges nothing. An invalid token is ErrUnauthorized. A token without
// the scope is *InsufficientScope, unless the scope is empty.
func (c *Client) Verify(ctx context.Context, accessToken, scope string) (Verified, error) {
	return c.VerifyWith(ctx, accessToken, VerifyOptions{Scope: scope})
}

// VerifyWith is Verify for a token with an audience or a proof. A proof that does not fit the request is *InvalidProof. The
// service takes a proof once, so a lost response is not asked for again: ErrOutcomeUnknown.
func (c *Client) VerifyWith(ctx context.Context, accessToken string, o VerifyOptions) (Verified, error) {
	asked, repeating := &caller{client: c, bearer: hide(accessToken)}, safe
	if o.Proof != "" {
		header, err := o.forwarded(accessToken)
		if err != nil {
			return Verified{}, err
		}
		asked.header, repeating = header, unsafe // the service takes a proof once
	}
	path := withQuery("/v1/auth/verify", "scope", o.Scope, "audience", o.Audience)
	header, err := asked.doWithHeader(ctx, call{method: http.MethodGet, path: path, semantics: repeating}, nil)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{
		AgentID: header.Get("X-Agent-Id"), OrganizationID: header.Get("X-Org-Id"), Scopes: strings.Fields(header.Get("X-Scopes")),
		ActorID: header.Get("X-Actor-Id"), Thumbprint: header.Get("X-Cnf-Jkt"),
	}
	if v.AgentID == "" || v.OrganizationID == "" {
		return Verified{}, errors.New("remit: GET /v1/auth/verify: unreadable answer: it does not name the agent")
	}
	return v, nil
}

// forwarded returns the proof with what it was made for, as a proxy passes them on.
func (o VerifyOptions) forwarded(accessToken string) (http.Header, error) {
	address, err := url.Parse(o.URL)
	if err != nil || address.Host == "" || o.Method == "" {
		return nil, errors.New("remit: a proof is verified for a request: set Method, and URL as https://host/path")
	}
	header := http.Header{}
	header.Set("Authorization", "DPoP "+accessToken)
	header.Set("DPoP", o.Proof)
	header.Set("X-Forwarded-Method", o.Method)
	header.Set("X-Forwarded-Proto", address.Scheme)
	header.Set("X-Forwarded-Host", address.Host)
	header.Set("X-Forwarded-Uri", address.RequestURI())
	return header, nil
}
