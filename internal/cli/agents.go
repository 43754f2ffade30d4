package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"remit/client"
)

type agentCommands struct {
	Create       createAgent       `cmd:"" help:"Create an agent and print its secret, if it has one."`
	List         listAgents        `cmd:"" help:"List the organization's agents, newest first."`
	Show         showAgent         `cmd:"" help:"Show an agent."`
	Update       updateAgent       `cmd:"" help:"Change an agent's name, description, metadata, scopes, limits, keys and audiences."`
	Suspend      suspendAgent      `cmd:"" help:"Suspend an agent at once, until it is resumed."`
	Resume       resumeAgent       `cmd:"" help:"Let a suspended agent go on."`
	Revoke       revokeAgent       `cmd:"" help:"Revoke an agent at once, with its tokens and open sessions."`
	RotateSecret rotateAgentSecret `cmd:"" help:"Print a new secret for an agent."`
	Families     listFamilies      `cmd:"" help:"List an agent's refresh token families, newest first."`
	RevokeFamily revokeFamily      `cmd:"" help:"Revoke a refresh token family at once, with its access tokens."`
}

type createAgent struct {
	asOrganization
	Name        string   `arg:"" help:"The agent's name, 1 to 200 characters."`
	Scopes      []string `env:"-" placeholder:"SCOPE,…" help:"Scopes of the agent; repeatable."`
	Description string   `env:"-" help:"A description for people."`
	Metadata    metadata `env:"-" placeholder:"JSON" help:"Metadata: a JSON object."`
	agentLimits
	agentKeys
	NoSecret     bool     `env:"-" help:"Create no secret: the agent authenticates by its key, or by a token of its workload."`
	Audiences    []string `name:"audience" sep:"none" env:"-" placeholder:"URI" help:"Audience that the agent's tokens may have; repeatable; an empty one means the service alone. The default is any https URI."`
	DPoPRequired bool     `name:"dpop-required" env:"-" help:"Refuse tokens of the agent that are not bound to a key."`
}

// Run creates the agent.
func (c *createAgent) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		keys, err := c.keys()
		if err != nil {
			return err
		}
		p := client.AgentParams{
			Name: c.Name, Scopes: c.Scopes, Description: c.Description, Metadata: c.Metadata.sent(), Limits: c.sent(),
			NoSecret: c.NoSecret, JWKS: keys, JWKSURI: c.JWKSURI, Audiences: listOrNone(c.Audiences), DPoPRequired: c.DPoPRequired,
		}
		made, err := o.CreateAgent(ctx, p)
		if err != nil {
			return err
		}
		if !c.NoSecret {
			ShownOnce("agent's secret")
		}
		secret := string(made.Secret)
		return c.Show(struct {
			client.AgentInfo
			Secret string `json:"secret,omitzero"`
		}{made, secret}, append(factsOfAgent(made), Fact{"SECRET", secret}))
	})
}

type listAgents struct {
	asOrganization
	Status string `env:"-" enum:"active,revoked,all" default:"all" help:"List only agents in this status: active, revoked or all. The default is all."`
}

// Run lists the agents.
func (c *listAgents) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		agents := o.Agents(ctx, client.AgentFilter{Status: unlessAll(c.Status)})
		return list(c.Output, agents, "ID\tNAME\tSTATUS\tSCOPES\tCREATED", func(a client.AgentInfo) []string {
			return []string{a.ID, a.Name, a.Status, strings.Join(a.Scopes, ","), moment(a.CreatedAt)}
		})
	})
}

type showAgent struct {
	asOrganization
	ID string `arg:"" help:"The agent's id."`
}

// Run shows the agent.
func (c *showAgent) Run() error {
	return callAndShow(c, factsOfAgent, func(ctx context.Context, o *client.Organization) (client.AgentInfo, error) {
		return o.GetAgent(ctx, c.ID)
	})
}

func factsOfAgent(a client.AgentInfo) []Fact {
	facts := []Fact{
		{"ID", a.ID}, {"NAME", a.Name}, {"STATUS", a.Status}, {"SUSPENDED", moment(a.SuspendedAt)}, {"REASON", a.SuspensionReason},
		{"SCOPES", strings.Join(a.Scopes, ",")}, {"DESCRIPTION", a.Description}, {"METADATA", shownMetadata(a.Metadata)},
		{"ORGANIZATION", a.OrganizationID}, {"CREATED", moment(a.CreatedAt)}, {"REVOKED", moment(a.RevokedAt)},
	}
	return append(append(facts, factsOfKeys(a)...), factsOfLimits(a)...)
}

type updateAgent struct {
	asOrganization
	ID          string   `arg:"" help:"The agent's id."`
	Name        string   `env:"-" help:"New name, 1 to 200 characters."`
	Description *string  `env:"-" help:"New description; an empty one removes it."`
	Metadata    metadata `env:"-" placeholder:"JSON" help:"New metadata: a JSON object."`
	Scopes      []string `env:"-" placeholder:"SCOPE,…" help:"New scopes of the agent; repeatable; an empty one removes all. Scopes that it loses are refused at once."`
	agentLimits
	agentKeys
	Audiences    []string `name:"audience" sep:"none" env:"-" placeholder:"URI" help:"Audience that new tokens of the agent may have; repeatable; an empty one means the service alone."`
	DPoPRequired *bool    `name:"dpop-required" negatable:"" env:"-" help:"Refuse tokens of the agent that are not bound to a key, also those it has; or accept them again."`
	Remove       []string `env:"-" enum:"jwks,jwks_uri,audiences" placeholder:"FIELD,…" help:"Fields to remove: jwks, jwks_uri, audiences (any audience); repeatable."`
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
	return callAndShow(c, factsOfAgent, func(ctx context.Context, o *client.Organization) (client.AgentInfo, error) {
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

type revokeAgent struct{ showAgent }

// Run revokes the agent and shows it.
func (c *revokeAgent) Run() error {
	return callAndShow(c, factsOfAgent, func(ctx context.Context, o *client.Organization) (client.AgentInfo, error) {
		if err := o.RevokeAgent(ctx, c.ID); err != nil {
			return client.AgentInfo{}, err
		}
		info, err := o.GetAgent(ctx, c.ID)
		if err != nil {
			err = fmt.Errorf("the agent is revoked, but could not be read: %w", c.explain(err))
		}
		return info, err
	})
}

type rotateAgentSecret struct {
	asOrganization
	ID string `arg:"" help:"The agent's id."`
	grace
	RevokeFamilies bool `env:"-" help:"Also end all tokens of the agent, after a theft of the secret."`
}

// Run rotates the secret.
func (c *rotateAgentSecret) Run() error {
	return c.rotate("agent's secret", func(ctx context.Context, o *client.Organization) (rotated, error) {
		r, err := o.RotateAgentSecret(ctx, c.ID, client.RotateSecretParams{Grace: time.Duration(c.Grace), RevokeFamilies: c.RevokeFamilies})
		return rotated{ID: c.ID, PreviousExpires: r.PreviousExpiresAt, Secret: string(r.Secret)}, err
	})
}

type listFamilies struct {
	asOrganization
	ID string `arg:"" help:"The agent's id."`
}

// Run lists the families.
func (c *listFamilies) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		return list(c.Output, o.Families(ctx, c.ID), "ID\tCREATED\tLAST USED\tEXPIRES", func(f client.Family) []string {
			return []string{f.ID, moment(f.CreatedAt), moment(f.LastUsedAt), moment(f.ExpiresAt)}
		})
	})
}

type revokeFamily struct {
	asOrganization
	Agent  string `arg:"" help:"The agent's id."`
	Family string `arg:"" help:"The family's id."`
}

// Run revokes the family.
func (c *revokeFamily) Run() error {
	facts := func(ended) []Fact { return []Fact{{"FAMILY", c.Family}, {"STATUS", "revoked"}} }
	return callAndShow(c, facts, func(ctx context.Context, o *client.Organization) (ended, error) {
		return ended{Revoked: true}, o.RevokeFamily(ctx, c.Agent, c.Family)
	})
}
