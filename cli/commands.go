// Package cli is what people and scripts do with a running service from a terminal: organizations, agents, tokens,
// sessions, charges, transactions and events. It calls the service through the Go SDK only.
//
//	remit org create acme
//	remit agent create scout --scopes read,payments:write
//	remit session create AGENT --max-value-usd 0.50
//	remit session watch SESSION
//
// A command prints a table for people, or with --json one JSON document with the names of the API. It prints a credential
// only where one is made.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"remit/client"
)

// Commands are those of this package, for main's own to embed.
type Commands struct {
	Org     orgCommands     `cmd:"" help:"Create organizations, show them and rotate their keys."`
	Agent   agentCommands   `cmd:"" help:"Create, list, show and revoke agents, and rotate their secrets."`
	Token   tokenCommands   `cmd:"" help:"Exchange an agent's secret for tokens, and inspect tokens."`
	Session sessionCommands `cmd:"" help:"Create, list, show, update, watch and end sessions."`

	Charge      charge              `cmd:"" help:"Charge actions to a session."`
	Transaction transactionCommands `cmd:"" help:"Begin, list, show, commit and roll back transactions."`
	Events      events              `cmd:"" help:"Print an agent's audit trail, and follow it."`
	Completion  completion          `cmd:"" help:"Print what a shell must read to complete the arguments of remit."`
}

// patience is how long a command waits for all of its answers.
const patience = 30 * time.Second

// defaultAddr is where a service listens that was not told to listen elsewhere.
const defaultAddr = "http://127.0.0.1:8080"

// service is the flags of every command that calls it. Of the flags of this package only those that say where the service
// is and who calls it have environment twins: what a command does must stand in its line.
type service struct {
	Addr string `placeholder:"URL" help:"Where the service is. The default is http://127.0.0.1:8080."`
	output
}

// call runs an operation on the service within patience, and words its error for people.
func (s *service) call(operation func(context.Context, *client.Client) error) error {
	remit, err := s.client(client.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.explain(operation(ctx, remit))
}

func (s *service) client(options client.Options) (*client.Client, error) {
	s.Addr = cmp.Or(s.Addr, defaultAddr) // REMIT_ADDR= is as good as none
	remit, err := client.New(s.Addr, options)
	if err != nil {
		return nil, fmt.Errorf("--addr: %w", s.explain(err))
	}
	return remit, nil
}

// asOrganization is the flags of commands that need an API key.
type asOrganization struct {
	service
	APIKey credential `name:"api-key" placeholder:"KEY" help:"The organization's API key: @FILE, - for standard input, or the key itself, which others on this machine can then see in the list of processes. Better in the environment."`
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

// agentFlags are an agent's id and secret.
type agentFlags struct {
	Agent  string     `placeholder:"ID" help:"The agent's id."`
	Secret credential `placeholder:"SECRET" help:"The agent's secret: @FILE, - for standard input, or the secret itself, which others on this machine can then see in the list of processes. Better in the environment."`
}
