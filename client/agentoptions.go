package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AgentOptions say how an agent authenticates, and what its tokens are for. Exactly one of Secret, Key, KeyFile, Assertion and
// AssertionFile is set.
type AgentOptions struct {
	Secret string

	// Key is a private key whose public part the service knows (AgentParams.JWKS or JWKSURI), as ParseKey reads it. It signs an
	// assertion for each exchange (private_key_jwt, RFC 7523 §2.2).
	Key string
	// KeyFile is a file with such a key. It is read at each exchange, so a new key counts without a restart.
	KeyFile string

	// Assertion returns the token that the agent's workload has from its platform, such as a CI job's. A trusted issuer of the
	// organization (CreateTrustedIssuer) lets it become tokens of this agent (RFC 7523 §2.1). It is called at each exchange.
	Assertion func(context.Context) (string, error)
	// AssertionFile is a file with such a token, such as a projected service account token. It is read at each exchange.
	AssertionFile string

	Resource []string // for which the tokens are, as absolute URIs (RFC 8707); empty: the service itself
	Scopes   []string // that the tokens have, of the agent's; empty: all

	// DPoP binds all tokens to a key (RFC 9449): each call proves that it has the key, and a stolen token is useless without it.
	// GenerateKey makes one that stays in memory, ReadKey reads one from a file. nil: bearer tokens.
	DPoP *Key
}

// UnusableCredential says that a key or a token of a workload cannot be used: its file is missing, or it is malformed. Nothing was
// sent.
type UnusableCredential struct {
	Source string // the file, or key or assertion
	cause  error
}

func (e *UnusableCredential) Error() string {
	return "the credential " + e.Source + " cannot be used: " + e.cause.Error()
}

// Unwrap returns the cause, such as fs.ErrNotExist.
func (e *UnusableCredential) Unwrap() error { return e.cause }

// AgentWith returns the agent with this id, which authenticates as the options say. It obtains its first tokens when it needs them,
// and reads files then.
func (c *Client) AgentWith(id string, o AgentOptions) (*Agent, error) {
	o.Scopes, o.Resource = slices.Clone(o.Scopes), slices.Clone(o.Resource)
	exchange, err := c.exchangeFor(id, o)
	if err != nil {
		return nil, err
	}
	return c.agent(id, exchange, newProver(o.DPoP)), nil
}

// agent returns an agent that obtains its tokens by the exchange.
func (c *Client) agent(id string, exchange func() call, p *prover) *Agent {
	own := &tokens{issuer: &caller{client: c, prover: p}, exchange: exchange, wall: wallClock}
	return &Agent{id: id, caller: &caller{client: c, tokens: own, prover: p}}
}

// exchangeFor returns what makes the call that obtains the first tokens.
func (c *Client) exchangeFor(id string, o AgentOptions) (func() call, error) {
	if err := o.hasOneCredential(); err != nil {
		return nil, err
	}
	switch {
	case o.Key != "":
		key, err := ParseKey(o.Key)
		if err != nil {
			return nil, err
		}
		return c.exchangeKey(id, func() (*Key, error) { return key, nil }, o), nil
	case o.KeyFile != "":
		return c.exchangeKey(id, func() (*Key, error) { return ReadKey(o.KeyFile) }, o), nil
	case o.Assertion != nil:
		return exchangeAssertion(id, "assertion", o.Assertion, o), nil
	case o.AssertionFile != "":
		read := func(context.Context) (string, error) { return readCredential(o.AssertionFile, maxAssertion) }
		return exchangeAssertion(id, o.AssertionFile, read, o), nil
	}
	return exchangeSecret(id, o), nil
}

func (o AgentOptions) hasOneCredential() error {
	var given []string
	for _, field := range []struct {
		name  string
		isSet bool
	}{
		{"Secret", o.Secret != ""}, {"Key", o.Key != ""}, {"KeyFile", o.KeyFile != ""},
		{"Assertion", o.Assertion != nil}, {"AssertionFile", o.AssertionFile != ""},
	} {
		if field.isSet {
			given = append(given, field.name)
		}
	}
	switch len(given) {
	case 0:
		return errors.New("remit: the agent has no credential: set Secret, Key, KeyFile, Assertion or AssertionFile")
	case 1:
		return nil
	}
	return fmt.Errorf("remit: the agent has several credentials: set one of %s", strings.Join(given, ", "))
}

// AgentWithToken returns an agent that has an access token and nothing else, such as one from Agent.Delegate. It uses the token until
// the service refuses it. dpop is the key that the token is bound to; nil: it is bound to none.
func (c *Client) AgentWithToken(accessToken string, dpop *Key) (*Agent, error) {
	claims, err := unverifiedClaims(accessToken)
	switch {
	case err != nil:
		return nil, &UnusableCredential{"access token", err}
	case claims.Confirmation.Thumbprint != "" && dpop == nil:
		return nil, &UnusableCredential{"access token", errors.New("it is bound to a key: pass the key")}
	case dpop != nil && claims.Confirmation.Thumbprint != dpop.Thumbprint():
		return nil, &UnusableCredential{"access token", errors.New("it is not bound to the key that was passed")}
	}
	return &Agent{id: claims.Subject, caller: &caller{client: c, bearer: hide(accessToken), prover: newProver(dpop)}}, nil
}

// tokenClaims are what an SDK reads of an access token. The service alone verifies it.
type tokenClaims struct {
	Subject      string `json:"sub"`
	SessionID    string `json:"session_id"`
	Confirmation struct {
		Thumbprint string `json:"jkt"`
	} `json:"cnf"`
}

func unverifiedClaims(token string) (claims tokenClaims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) == 3 {
		var text []byte
		if text, err = base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			err = json.Unmarshal(text, &claims)
		}
	}
	if err != nil || claims.Subject == "" {
		return claims, errors.New("it is no access token of the service")
	}
	return claims, nil
}

// errNotRenewable is the error of renewing an agent that has a token alone.
type errNotRenewable struct{}

func (errNotRenewable) Error() string {
	return "remit: this agent has an access token alone, which cannot be renewed: get a new one where it came from"
}

func (errNotRenewable) Is(target error) bool { return target == ErrUnauthorized }
