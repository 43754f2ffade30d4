package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Verified is the agent of a valid access token.
type Verified struct {
	AgentID        string
	OrganizationID string
	Scopes         []string
}

// Verify checks an access token as a gateway does, and charges nothing. An invalid token is ErrUnauthorized. A token without
// the scope is *InsufficientScope, unless the scope is empty.
func (c *Client) Verify(ctx context.Context, accessToken, scope string) (Verified, error) {
	path := withQuery("/v1/auth/verify", "scope", scope)
	header, err := (&caller{client: c, bearer: hide(accessToken)}).doWithHeader(ctx, call{method: http.MethodGet, path: path}, nil)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{header.Get("X-Agent-Id"), header.Get("X-Org-Id"), strings.Fields(header.Get("X-Scopes"))}
	if v.AgentID == "" || v.OrganizationID == "" {
		return Verified{}, errors.New("remit: GET /v1/auth/verify: unreadable answer: it does not name the agent")
	}
	return v, nil
}
