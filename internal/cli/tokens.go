package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"remit/client"
)

type tokenCommands struct {
	Get     getToken     `cmd:"" default:"withargs" help:"Exchange an agent's secret, key or workload token for an access token, and a refresh token if there is one (the default)."`
	Inspect inspectToken `cmd:"" help:"Show the current state of a token."`
	Verify  verifyToken  `cmd:"" help:"Check an access token as a proxy does."`
}

type getToken struct {
	service
	agentFlags
	Scopes []string `env:"-" placeholder:"SCOPE,…" help:"Scopes of the tokens; repeatable. The default is all that the agent has."`
}

// Run exchanges the credential.
func (c *getToken) Run() error {
	if c.DPoP == "1" {
		return errKeyInMemory
	}
	o, err := c.options(errNoSecret)
	if err != nil {
		return err
	}
	o.Scopes = c.Scopes
	return c.call(func(ctx context.Context, remit *client.Client) error {
		pair, err := remit.ExchangeWith(ctx, c.Agent, o)
		if err != nil {
			return err
		}
		access, refresh := string(pair.AccessToken), string(pair.RefreshToken)
		return c.Show(struct {
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token,omitzero"`
			client.TokenPair
		}{access, refresh, pair}, []Fact{
			{"ACCESS TOKEN", access}, {"REFRESH TOKEN", refresh}, {"BOUND TO", boundTo(o.DPoP)},
			{"EXPIRES IN", (time.Duration(pair.ExpiresIn) * time.Second).String()},
		})
	})
}

func boundTo(key *client.Key) string {
	if key == nil {
		return ""
	}
	return key.Thumbprint()
}

type verifyToken struct {
	service
	Token    credential `arg:"" optional:"" default:"-" help:"The access token: @FILE, - for standard input (the default), or the token itself, which other users of this machine can then see."`
	Scope    string     `env:"-" help:"Scope that the token must have."`
	Audience string     `env:"-" placeholder:"URI" help:"Audience that the token must have. The default is the service itself."`
}

// Run verifies the token and shows whose it is.
func (c *verifyToken) Run() error {
	token, err := c.Token.read()
	if err != nil {
		return err
	}
	return c.call(func(ctx context.Context, remit *client.Client) error {
		v, err := remit.VerifyWith(ctx, token, client.VerifyOptions{Scope: c.Scope, Audience: c.Audience})
		if err != nil {
			return err
		}
		return c.Show(struct {
			Agent        string   `json:"agent_id"`
			Organization string   `json:"org_id"`
			Scopes       []string `json:"scopes"`
			Actor        string   `json:"actor_id,omitzero"`
		}{v.AgentID, v.OrganizationID, v.Scopes, v.ActorID}, []Fact{
			{"AGENT", v.AgentID}, {"ORGANIZATION", v.OrganizationID}, {"SCOPES", strings.Join(v.Scopes, ",")}, {"ACTOR", v.ActorID},
		})
	})
}

type inspectToken struct {
	asOrganization
	Token credential `arg:"" optional:"" default:"-" help:"The token: @FILE, - for standard input (the default), or the token itself, which other users of this machine can then see."`
}

// Run shows the state of the token.
func (c *inspectToken) Run() error {
	token, err := c.Token.read()
	if err != nil {
		return err
	}
	return callAndShow(c, factsOfToken, func(ctx context.Context, o *client.Organization) (client.Introspection, error) {
		return o.Introspect(ctx, token)
	})
}

func factsOfToken(t client.Introspection) []Fact {
	return []Fact{
		{"ACTIVE", strconv.FormatBool(t.Active)}, {"AGENT", t.AgentID}, {"ORGANIZATION", t.OrganizationID}, {"SCOPES", t.Scope},
		{"ISSUER", t.Issuer}, {"AUDIENCE", strings.Join(t.Audience, ",")}, {"BOUND TO", t.Thumbprint},
		{"SESSION", t.SessionID}, {"ACTORS", strings.Join(t.Actors, ",")},
		{"ISSUED", second(t.Issued)}, {"EXPIRES", second(t.Expires)},
	}
}

// second is moment for seconds since 1970; 0 is empty.
func second(unix int64) string {
	if unix == 0 {
		return ""
	}
	return moment(time.Unix(unix, 0))
}
