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
	AccessToken Credential `json:"access_token"`
	TokenType   string     `json:"token_type"` // Bearer or DPoP
	ExpiresIn   int64      `json:"expires_in"` // seconds
	Scopes      []string   `json:"-"`
	SessionID   string     `json:"-"`
	AgentID     string     `json:"-"` // whose session it is
}

// Delegate returns a token for a child of one of the agent's sessions (Session.CreateChild), which Client.AgentWithToken uses (RFC
// 8693). The agent needs the scope sessions:delegate. If the agent has a DPoP key, the token is bound to it too.
func (a *Agent) Delegate(ctx context.Context, childSessionID string, p DelegateParams) (DelegatedToken, error) {
	var answer struct {
		DelegatedToken
		Scope string `json:"scope"`
	}
	var presented string
	q := call{method: http.MethodPost, path: oauthTokenPath, semantics: safe, form: func(ctx context.Context) (url.Values, error) {
		access, err := a.Token(ctx)
		if err != nil {
			return nil, noToken(err)
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
	claims, err := unverifiedClaims(string(answer.AccessToken))
	if err != nil {
		return DelegatedToken{}, errors.New("remit: POST " + oauthTokenPath + ": the answer has no access token")
	}
	made := answer.DelegatedToken
	made.Scopes, made.SessionID, made.AgentID = strings.Fields(answer.Scope), childSessionID, claims.Subject
	return made, nil
}
