package client

import (
	"context"
	"net/http"
)

// TokenPair is an access token and a refresh token.
type TokenPair struct {
	AccessToken  Credential `json:"access_token"`
	RefreshToken Credential `json:"refresh_token"` // empty: none, as for an assertion
	TokenType    string     `json:"token_type"`    // bearer, or DPoP for tokens that are bound to a key
	ExpiresIn    int64      `json:"expires_in"`    // lifetime of the access token in seconds
}

// Exchange exchanges an agent's secret for a new pair of tokens, for callers that store and renew tokens themselves. An
// Agent does this itself.
func (c *Client) Exchange(ctx context.Context, agentID, secret string) (TokenPair, error) {
	body := map[string]string{"agent_id": agentID, "secret": secret}
	q := call{method: http.MethodPost, path: "/v1/auth/token", body: body, semantics: safe}
	return decoded[TokenPair](ctx, &caller{client: c}, q)
}

// ExchangeWith is Exchange for any credential.
func (c *Client) ExchangeWith(ctx context.Context, agentID string, o AgentOptions) (TokenPair, error) {
	agent, err := c.AgentWith(agentID, o)
	if err != nil {
		return TokenPair{}, err
	}
	own := agent.caller.tokens
	return own.request(ctx, own.exchange())
}
