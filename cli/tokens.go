package cli

import (
	"context"
	"strconv"
	"time"

	"remit/client"
)

type tokenCommands struct {
	Get     getToken     `cmd:"" default:"withargs" help:"Exchange an agent's secret for an access and a refresh token (the default)."`
	Inspect inspectToken `cmd:"" help:"Show the current state of a token."`
}

type getToken struct {
	service
	agentFlags
}

// Run exchanges the secret.
func (c *getToken) Run() error {
	secret, err := c.Secret.read()
	if err != nil {
		return err
	}
	if c.Agent == "" || secret == "" {
		return errNoSecret
	}
	return c.call(func(ctx context.Context, remit *client.Client) error {
		pair, err := remit.Exchange(ctx, c.Agent, secret)
		if err != nil {
			return err
		}
		access, refresh := string(pair.AccessToken), string(pair.RefreshToken)
		return c.show(struct {
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token"`
			client.TokenPair
		}{access, refresh, pair}, []fact{
			{"ACCESS TOKEN", access}, {"REFRESH TOKEN", refresh}, {"EXPIRES IN", (time.Duration(pair.ExpiresIn) * time.Second).String()},
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
	return c.call(func(ctx context.Context, o *client.Organization) error {
		info, err := o.Introspect(ctx, token)
		if err != nil {
			return err
		}
		return c.show(info, factsOfToken(info))
	})
}

func factsOfToken(t client.Introspection) []fact {
	return []fact{
		{"ACTIVE", strconv.FormatBool(t.Active)}, {"AGENT", t.AgentID}, {"ORGANIZATION", t.OrganizationID}, {"SCOPES", t.Scope},
		{"ISSUER", t.Issuer}, {"ISSUED", second(t.Issued)}, {"EXPIRES", second(t.Expires)},
	}
}

// second is moment for seconds since 1970; 0 is empty.
func second(unix int64) string {
	if unix == 0 {
		return ""
	}
	return moment(time.Unix(unix, 0))
}
