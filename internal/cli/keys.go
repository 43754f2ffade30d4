package cli

import (
	"context"
	"errors"
	"time"

	"remit/client"
)

type keyCommands struct {
	Create createKey `cmd:"" help:"Create an API key with a role and print it."`
	List   listKeys  `cmd:"" help:"List the organization's API keys, newest first."`
	Rotate rotateKey `cmd:"" help:"Rotate an API key and print the new one."`
	Revoke revokeKey `cmd:"" help:"Revoke an API key at once."`
}

type createKey struct {
	asOrganization
	Name      string   `arg:"" help:"The key's name, 1 to 200 characters."`
	Role      string   `env:"-" enum:"viewer,operator,admin" placeholder:"viewer|operator|admin" required:"" help:"What the key may do: viewer reads, operator also runs sessions and suspends, admin does everything."`
	ExpiresIn duration `env:"-" placeholder:"DURATION" help:"Lifetime of the key, up to 3650d. By default it never expires."`
}

// Validate is called by the flag parser.
func (c *createKey) Validate() error {
	if c.ExpiresIn != 0 && time.Duration(c.ExpiresIn) < time.Second {
		return errors.New("--expires-in must be at least 1s")
	}
	return nil
}

// Run creates the key.
func (c *createKey) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		made, err := o.CreateAPIKey(ctx, client.APIKeyParams{Name: c.Name, Role: c.Role, ExpiresIn: time.Duration(c.ExpiresIn)})
		if err != nil {
			return err
		}
		ShownOnce("API key")
		key := string(made.APIKey)
		return c.Show(struct {
			client.APIKeyInfo
			APIKey string `json:"api_key"`
		}{made, key}, []Fact{
			{"ID", made.ID}, {"NAME", made.Name}, {"ROLE", made.Role}, {"CREATED", moment(made.CreatedAt)},
			{"EXPIRES", momentOr(made.ExpiresAt, "never")}, {"API KEY", key},
		})
	})
}

type listKeys struct{ asOrganization }

// Run lists the keys.
func (c *listKeys) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		return list(c.Output, each(o.APIKeys(ctx)), "ID\tNAME\tROLE\tENDS IN\tCREATED\tEXPIRES\tLAST USED", func(k client.APIKeyInfo) []string {
			return []string{k.ID, k.Name, k.Role, "…" + k.Hint, moment(k.CreatedAt), momentOr(k.ExpiresAt, "never"), momentOr(k.LastUsedAt, "never")}
		})
	})
}

// keyID is the argument of commands for one API key.
type keyID struct {
	ID string `arg:"" help:"The key's id, as the list shows it."`
}

type rotateKey struct {
	asOrganization
	keyID
	grace
}

// Run rotates the key.
func (c *rotateKey) Run() error {
	return c.rotate("API key", func(ctx context.Context, o *client.Organization) (rotated, error) {
		r, err := o.RotateAPIKey(ctx, c.ID, client.RotateKeyParams{Grace: (*time.Duration)(&c.Grace)})
		return rotated{ID: c.ID, PreviousExpires: r.PreviousExpiresAt, APIKey: string(r.APIKey)}, err
	})
}

type revokeKey struct {
	asOrganization
	keyID
}

// Run revokes the key.
func (c *revokeKey) Run() error {
	facts := func(e ended) []Fact { return []Fact{{"KEY", e.ID}, {"STATUS", "revoked"}} }
	return callAndShow(c, facts, func(ctx context.Context, o *client.Organization) (ended, error) {
		return ended{ID: c.ID, Revoked: true}, o.DeleteAPIKey(ctx, c.ID)
	})
}
