package client

import (
	"context"
	"net/http"
)

// TokenPair is what an agent's secret is exchanged for.
type TokenPair struct {
	AccessToken  Credential `json:"access_token"`
	RefreshToken Credential `json:"refresh_token"`
	TokenType    string     `json:"token_type"` // bearer
	ExpiresIn    int64      `json:"expires_in"` // seconds that the access token lives
}

// Exchange exchanges an agent's secret for a new pair of tokens, for whoever keeps and renews them by other means. An
// Agent does it by itself.
func (c *Client) Exchange(ctx context.Context, agentID, secret string) (TokenPair, error) {
	var pair TokenPair
	body := map[string]string{"agent_id": agentID, "secret": secret}
	err := (&caller{client: c}).do(ctx, call{method: http.MethodPost, path: "/v1/auth/token", body: body, effect: reads}, &pair)
	return pair, err
}
