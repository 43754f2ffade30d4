package cli

import (
	"context"
	"errors"

	"remit/client"
)

type updateAgent struct {
	asOrganization
	ID          string    `arg:"" help:"The agent's id."`
	Name        string    `env:"-" help:"New name, 1 to 200 characters."`
	Description *string   `env:"-" help:"New description; an empty one removes it."`
	Metadata    metadata  `env:"-" placeholder:"JSON" help:"New metadata: a JSON object."`
	Scopes      *[]string `env:"-" placeholder:"SCOPE,…" help:"New scopes of the agent; repeatable; an empty one removes all. Scopes that it loses are refused at once."`
	agentLimits
	agentKeys
	Audiences    *[]string `name:"audience" sep:"none" env:"-" placeholder:"URI" help:"Audience that new tokens of the agent may have; repeatable; an empty one means the service alone."`
	DPoPRequired *bool     `name:"dpop-required" negatable:"" env:"-" help:"Refuse tokens of the agent that are not bound to a key, also those it has; or accept them again."`
	Remove       []string  `env:"-" enum:"jwks,jwks_uri,audiences" placeholder:"FIELD,…" help:"Fields to remove: jwks, jwks_uri, audiences (any audience); repeatable."`
}

// Validate is called by the flag parser.
func (c *updateAgent) Validate() error {
	isOld := c.Name == "" && c.Description == nil && c.Metadata == nil && c.Scopes == nil && c.agentLimits == (agentLimits{})
	if isOld && c.agentKeys == (agentKeys{}) && c.Audiences == nil && c.DPoPRequired == nil && c.Remove == nil {
		return errors.New("set at least one of --name, --description, --metadata, --scopes, the limits, --jwks, --jwks-uri, --audience, --dpop-required and --remove")
	}
	return nil
}

// Run changes the agent and shows it.
func (c *updateAgent) Run() error {
	return showing(c, factsOfAgent, func(ctx context.Context, o *client.Organization) (client.AgentInfo, error) {
		keys, err := c.keys()
		if err != nil {
			return client.AgentInfo{}, err
		}
		return o.UpdateAgent(ctx, c.ID, client.AgentChanges{
			Name: c.Name, Description: c.Description, Metadata: c.Metadata.sent(), Scopes: listOrNone(c.Scopes), Limits: c.sent(),
			JWKS: keys, JWKSURI: c.JWKSURI, Audiences: listOrNone(c.Audiences), DPoPRequired: c.DPoPRequired, Remove: c.Remove,
		})
	})
}
