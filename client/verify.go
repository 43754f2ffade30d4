package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Verified is whose a valid access token is.
type Verified struct {
	AgentID        string
	OrganizationID string
	Scopes         []string
}

// Verify says whose an access token is, as a gateway would ask. One that is not valid is ErrUnauthorized, and one without
// the scope, unless that is empty, *InsufficientScope. Nothing is charged.
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
