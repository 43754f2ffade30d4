package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// DelegateParams narrow a delegated token. The zero value works.
type DelegateParams struct {
	Scopes   []string // empty: all that the agent, the child session and its agent have
	Resource []string // as AgentOptions.Resource
}

// DelegatedToken is an access token for one child session, and for nothing else. It ends with the session, and cannot be renewed.
type DelegatedToken struct {
	AccessToken Credential
	TokenType   string // Bearer or DPoP
	ExpiresIn   int64  // seconds
	Scopes      []string
	SessionID   string
	AgentID     string // whose session it is
}

// Delegate returns a token for a child of one of the agent's sessions (Session.CreateChild), which Client.AgentWithToken uses (RFC
// 8693). The agent needs the scope sessions:delegate. If the agent has a DPoP key, the token is bound to it too.
func (a *Agent) Delegate(ctx context.Context, childSessionID string, p DelegateParams) (DelegatedToken, error) {
	var answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
		Scope       string `json:"scope"`
	}
	var presented string
	q := call{method: http.MethodPost, path: oauthTokenPath, semantics: safe, form: func(ctx context.Context) (url.Values, error) {
		access, err := a.Token(ctx)
		if err != nil {
			return nil, &noToken{err}
		}
		presented = access
		form := tokenForm(grantExchange, "", p.Scopes, p.Resource)
		form.Set("subject_token", access)
		form.Set("subject_token_type", typeAccessToken)
		form.Set("session_id", childSessionID)
		return form, nil
	}}
	asked := &caller{client: a.caller.client, prover: a.caller.prover}
	err := asked.do(ctx, q, &answer)
	if hasCode(err, codeInvalidRequest) && a.caller.tokens != nil { // which is also what a token that was revoked gets (RFC 8693 §2.2.2)
		if _, renewal := a.caller.tokens.get(ctx, presented); renewal == nil {
			err = asked.do(ctx, q, &answer)
		}
	}
	if err != nil {
		return DelegatedToken{}, err
	}
	claims, err := unverifiedClaims(answer.AccessToken)
	if err != nil {
		return DelegatedToken{}, errors.New("remit: POST " + oauthTokenPath + ": the answer has no access token")
	}
	return DelegatedToken{
		AccessToken: Credential(answer.AccessToken), TokenType: answer.TokenType, ExpiresIn: answer.ExpiresIn,
		Scopes: strings.Fields(answer.Scope), SessionID: childSessionID, AgentID: claims.Subject,
	}, nil
}
