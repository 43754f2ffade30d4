package cli

import (
	"context"
	"time"

	"remit/client"
)

type orgCommands struct {
	Create    createOrg    `cmd:"" help:"Create an organization and print its API key."`
	Show      showOrg      `cmd:"" help:"Show your organization."`
	RotateKey rotateOrgKey `cmd:"" help:"Rotate the organization's API key and print the new one."`
}

type createOrg struct {
	service
	Name           string   `arg:"" help:"The organization's name, 1 to 200 characters."`
	Metadata       metadata `env:"-" placeholder:"JSON" help:"Metadata: a JSON object."`
	BootstrapToken string   `placeholder:"FILE" help:"File with the bootstrap token, which a service with --organizations=token requires; - is standard input."`
}

// Run creates the organization.
func (c *createOrg) Run() error {
	bootstrap, err := c.bootstrap()
	if err != nil {
		return err
	}
	return c.call(func(ctx context.Context, remit *client.Client) error {
		made, err := remit.CreateOrganization(ctx, client.OrganizationParams{
			Name: c.Name, Metadata: c.Metadata.sent(), BootstrapToken: client.Credential(bootstrap),
		})
		if err != nil {
			return err
		}
		ShownOnce("API key")
		key := string(made.APIKey)
		return c.Show(struct {
			client.OrganizationInfo
			APIKey string `json:"api_key"`
		}{made, key}, append(factsOfOrg(made), Fact{"API KEY", key}))
	})
}

// bootstrap reads the token. The flag takes a file name, like serve's flag of the same name, because both read the same
// environment variable.
func (c *createOrg) bootstrap() (string, error) {
	switch c.BootstrapToken {
	case "", "-":
		return credential(c.BootstrapToken).read()
	}
	return credential("@" + c.BootstrapToken).read()
}

type showOrg struct {
	asOrganization
	ID string `arg:"" help:"The organization's id."`
}

// Run shows the organization.
func (c *showOrg) Run() error {
	return callAndShow(c, factsOfOrg, func(ctx context.Context, o *client.Organization) (client.OrganizationInfo, error) {
		return o.Info(ctx, c.ID)
	})
}

func factsOfOrg(o client.OrganizationInfo) []Fact {
	return []Fact{
		{"ID", o.ID}, {"NAME", o.Name}, {"METADATA", shownMetadata(o.Metadata)}, {"CREATED", moment(o.CreatedAt)},
	}
}

type rotateOrgKey struct {
	asOrganization
	ID string `arg:"" help:"The organization's id."`
	grace
}

// Run rotates the key.
func (c *rotateOrgKey) Run() error {
	return c.rotate("API key", func(ctx context.Context, o *client.Organization) (rotated, error) {
		r, err := o.RotateKey(ctx, c.ID, client.RotateKeyParams{Grace: (*time.Duration)(&c.Grace)})
		return rotated{PreviousExpires: r.PreviousExpiresAt, APIKey: string(r.APIKey)}, err
	})
}
