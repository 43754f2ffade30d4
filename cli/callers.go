package cli

import (
	"context"

	"remit/client"
)

// asOrganization is the flags of commands that need an API key.
type asOrganization struct {
	service
	APIKey credential `name:"api-key" placeholder:"KEY" help:"API key of the organization: @FILE, - for standard input, or the key itself. Prefer the environment variable: other users of this machine can see command lines."`
}

func (o *asOrganization) call(operation func(context.Context, *client.Organization) error) error {
	key, err := o.APIKey.read()
	if err != nil {
		return err
	}
	if key == "" {
		return errNoKey
	}
	return o.service.call(func(ctx context.Context, remit *client.Client) error {
		return operation(ctx, remit.Organization(key))
	})
}

// callAtLeisure is call with a confirmation before it, for which a person may take longer than callTime.
func (o *asOrganization) callAtLeisure(confirm, operation func(context.Context, *client.Organization) error) error {
	var confirmation error
	key, err := o.APIKey.read()
	if err != nil {
		return err
	}
	o.APIKey = credential(key) // standard input is read once
	if key == "" {
		return errNoKey
	}
	remit, err := o.client(client.Options{})
	if err != nil {
		return err
	}
	if confirmation = confirm(context.Background(), remit.Organization(key)); confirmation != nil {
		return o.explain(confirmation)
	}
	return o.call(operation)
}

// agentFlags are an agent's id and secret.
type agentFlags struct {
	Agent  string     `placeholder:"ID" help:"The agent's id."`
	Secret credential `placeholder:"SECRET" help:"Secret of the agent: @FILE, - for standard input, or the secret itself. Prefer the environment variable: other users of this machine can see command lines."`
}

// asAgent is the flags of commands that need an agent's secret.
type asAgent struct {
	service
	agentFlags
}

func (a *asAgent) call(operation func(context.Context, *client.Agent) error) error {
	secret, err := a.Secret.read()
	if err != nil {
		return err
	}
	if a.Agent == "" || secret == "" {
		return errNoSecret
	}
	return a.service.call(func(ctx context.Context, remit *client.Client) error {
		return operation(ctx, remit.Agent(a.Agent, secret))
	})
}
