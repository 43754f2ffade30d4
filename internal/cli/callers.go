package cli

import (
	"context"
	"slices"
	"time"

	"github.com/alecthomas/kong"
	"remit/client"
)

// asOrganization is the flags of commands that need an API key.
type asOrganization struct {
	service
	APIKey credential `name:"api-key" placeholder:"KEY" help:"API key of the organization: @FILE, - for standard input, or the key itself. Prefer the environment variable: other users of this machine can see command lines."`
}

// command is a command that calls the service as a C: an organization, an agent, or either.
type command[C any] interface {
	call(operation func(context.Context, C) error) error
	Show(document any, facts []Fact) error
}

// callAndShow calls an operation and shows what it returns, a T, by its facts.
func callAndShow[C, T any](c command[C], facts func(T) []Fact, operation func(context.Context, C) (T, error)) error {
	return c.call(func(ctx context.Context, as C) error {
		found, err := operation(ctx, as)
		if err != nil {
			return err
		}
		return c.Show(found, facts(found))
	})
}

// ended is what is left of an object that a command has ended.
type ended struct {
	ID      string `json:"id,omitzero"`
	Deleted bool   `json:"deleted,omitzero"`
	Revoked bool   `json:"revoked,omitzero"`
}

// rotated is a credential that replaces another.
type rotated struct {
	ID              string    `json:"id,omitzero"`
	PreviousExpires time.Time `json:"previous_expires_at"`
	APIKey          string    `json:"api_key,omitzero"`
	Secret          string    `json:"secret,omitzero"`
}

// rotate calls an operation that replaces a credential, and shows the new one.
func (o *asOrganization) rotate(what string, operation func(context.Context, *client.Organization) (rotated, error)) error {
	return callAndShow(o, factsOfRotated, func(ctx context.Context, organization *client.Organization) (rotated, error) {
		r, err := operation(ctx, organization)
		if err == nil {
			ShownOnce(what)
		}
		return r, err
	})
}

func factsOfRotated(r rotated) []Fact {
	return []Fact{{"API KEY", r.APIKey}, {"SECRET", r.Secret}, {"PREVIOUS ENDS", moment(r.PreviousExpires)}}
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

// agentFlags are an agent's id, how it authenticates, and what its tokens are for.
type agentFlags struct {
	Agent         string     `placeholder:"ID" help:"The agent's id."`
	Secret        credential `placeholder:"SECRET" help:"Secret of the agent: @FILE, - for standard input, or the secret itself. Prefer the environment variable: other users of this machine can see command lines."`
	KeyFile       string     `type:"path" placeholder:"FILE" help:"Private key of the agent instead of a secret: a JWK or PEM."`
	AssertionFile string     `type:"path" placeholder:"FILE" help:"Token of the agent's workload instead of a secret, such as a projected service account token."`
	Resource      []string   `sep:" " placeholder:"URI" help:"What tokens are to be for; repeatable. The default is the service itself."`
	DPoP          string     `name:"dpop" placeholder:"FILE" help:"Private key that the tokens are bound to: a JWK or PEM; 1 makes one for this command."`
}

// credentialFlags are the flags of which an agent needs one.
var credentialFlags = []string{"secret", "key-file", "assertion-file"}

// AfterApply is called by the flag parser. A credential on the command line takes precedence over those in the environment.
func (f *agentFlags) AfterApply(parsed *kong.Context) error {
	inLine := flagsInLine(parsed)
	if !slices.ContainsFunc(credentialFlags, func(name string) bool { return inLine[name] }) {
		return nil
	}
	for i, value := range []*string{(*string)(&f.Secret), &f.KeyFile, &f.AssertionFile} {
		if !inLine[credentialFlags[i]] {
			*value = ""
		}
	}
	return nil
}

// flagsInLine returns the names of the flags that the command line sets, not the environment.
func flagsInLine(parsed *kong.Context) map[string]bool {
	names := map[string]bool{}
	for _, p := range parsed.Path {
		if p.Flag != nil && !p.Resolved {
			names[p.Flag.Name] = true
		}
	}
	return names
}

// options returns how the agent authenticates; the error is missing if the flags do not say.
func (f *agentFlags) options(missing error) (client.AgentOptions, error) {
	secret, err := f.Secret.read()
	if err != nil {
		return client.AgentOptions{}, err
	}
	o := client.AgentOptions{Secret: secret, KeyFile: f.KeyFile, AssertionFile: f.AssertionFile, Resource: f.Resource}
	given := slices.DeleteFunc([]string{secret, f.KeyFile, f.AssertionFile}, func(credential string) bool { return credential == "" })
	switch {
	case f.Agent == "" || len(given) == 0:
		return o, missing
	case len(given) > 1:
		return o, errManyCredentials
	}
	o.DPoP, err = f.proofKey()
	return o, err
}

// agentOf returns the agent; the error is missing if the flags do not say how it authenticates.
func (f *agentFlags) agentOf(remit *client.Client, missing error) (*client.Agent, error) {
	o, err := f.options(missing)
	if err != nil {
		return nil, err
	}
	return remit.AgentWith(f.Agent, o)
}

// proofKey returns the key that the tokens are to be bound to; nil: to none.
func (f *agentFlags) proofKey() (*client.Key, error) {
	switch f.DPoP {
	case "", "0":
		return nil, nil
	case "1":
		return client.GenerateKey(client.ES256)
	}
	return client.ReadKey(f.DPoP)
}

// asAgent is the flags of commands that an agent calls.
type asAgent struct {
	service
	agentFlags
}

func (a *asAgent) call(operation func(context.Context, *client.Agent) error) error {
	return a.service.call(func(ctx context.Context, remit *client.Client) error {
		agent, err := a.agentOf(remit, errNoSecret)
		if err != nil {
			return err
		}
		return operation(ctx, agent)
	})
}
