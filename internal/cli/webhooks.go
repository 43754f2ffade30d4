package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"remit/client"
)

type webhookCommands struct {
	Create     createWebhook  `cmd:"" help:"Create a webhook and print its secret."`
	List       listWebhooks   `cmd:"" help:"List the organization's webhooks, newest first."`
	Show       showWebhook    `cmd:"" help:"Show a webhook."`
	Update     updateWebhook  `cmd:"" help:"Change a webhook's URL, types of events and description."`
	Test       testWebhook    `cmd:"" help:"Send a test event to a webhook."`
	Rotate     rotateWebhook  `cmd:"" help:"Rotate a webhook's secret and print the new one."`
	Delete     deleteWebhook  `cmd:"" help:"Delete a webhook with its deliveries."`
	Deliveries listDeliveries `cmd:"" help:"List a webhook's deliveries, newest first."`
	Retry      retryDelivery  `cmd:"" help:"Send a delivery again at once."`
}

type createWebhook struct {
	asOrganization
	URL         string             `arg:"" help:"Where to send events: https, with a public address."`
	Types       []client.EventType `env:"-" placeholder:"TYPE,…" help:"Types of events to send; repeatable. The default is all."`
	Description string             `env:"-" help:"A description for people."`
}

// Run creates the webhook.
func (c *createWebhook) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		made, err := o.CreateWebhook(ctx, client.WebhookParams{URL: c.URL, Types: c.Types, Description: c.Description})
		if err != nil {
			return err
		}
		ShownOnce("webhook's secret")
		secret := string(made.Secret)
		return c.Show(struct {
			client.WebhookInfo
			Secret string `json:"secret"`
		}{made, secret}, append(factsOfWebhook(made), Fact{"SECRET", secret}))
	})
}

type listWebhooks struct{ asOrganization }

// Run lists the webhooks.
func (c *listWebhooks) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		return list(c.Output, each(o.Webhooks(ctx)), "ID\tURL\tTYPES\tCONFIRMED\tFAILING SINCE\tCREATED", func(w client.WebhookInfo) []string {
			return []string{w.ID, w.URL, typesOf(w), momentOr(&w.ConfirmedAt, "-"), momentOr(&w.FailingSince, "-"), moment(w.CreatedAt)}
		})
	})
}

// webhookID is the argument of commands for one webhook.
type webhookID struct {
	ID string `arg:"" help:"The webhook's id."`
}

type showWebhook struct {
	asOrganization
	webhookID
}

// Run shows the webhook.
func (c *showWebhook) Run() error {
	return callAndShow(c, factsOfWebhook, func(ctx context.Context, o *client.Organization) (client.WebhookInfo, error) {
		return o.GetWebhook(ctx, c.ID)
	})
}

type updateWebhook struct {
	asOrganization
	webhookID
	URL         string             `env:"-" help:"Where to send events."`
	Types       []client.EventType `env:"-" placeholder:"TYPE,…" help:"Types of events to send; repeatable; an empty one sends all."`
	Description *string            `env:"-" help:"A description for people."`
}

// Validate is called by the flag parser.
func (c *updateWebhook) Validate() error {
	if c.URL == "" && c.Types == nil && c.Description == nil {
		return errors.New("set at least one of --url, --types and --description")
	}
	return nil
}

// Run changes the webhook and shows it.
func (c *updateWebhook) Run() error {
	return callAndShow(c, factsOfWebhook, func(ctx context.Context, o *client.Organization) (client.WebhookInfo, error) {
		return o.UpdateWebhook(ctx, c.ID, client.WebhookChanges{URL: c.URL, Types: listOrNone(c.Types), Description: c.Description})
	})
}

type testWebhook struct{ showWebhook }

// Run sends the test event and shows its delivery.
func (c *testWebhook) Run() error {
	return callAndShow(c, factsOfDelivery, func(ctx context.Context, o *client.Organization) (client.Delivery, error) {
		return o.TestWebhook(ctx, c.ID)
	})
}

type rotateWebhook struct {
	asOrganization
	webhookID
	Grace duration `default:"1d" env:"-" placeholder:"DURATION" help:"How long requests are signed by the current secret too, up to 7d. Use 0s if it has leaked. The default is 1d."`
}

// Run rotates the secret.
func (c *rotateWebhook) Run() error {
	return c.rotate("webhook's secret", func(ctx context.Context, o *client.Organization) (rotated, error) {
		r, err := o.RotateWebhookSecret(ctx, c.ID, client.RotateWebhookParams{Grace: (*time.Duration)(&c.Grace)})
		return rotated{ID: c.ID, PreviousExpires: r.PreviousExpiresAt, Secret: string(r.Secret)}, err
	})
}

type deleteWebhook struct{ showWebhook }

// Run deletes the webhook.
func (c *deleteWebhook) Run() error {
	facts := func(e ended) []Fact { return []Fact{{"WEBHOOK", e.ID}, {"STATUS", "deleted"}} }
	return callAndShow(c, facts, func(ctx context.Context, o *client.Organization) (ended, error) {
		return ended{ID: c.ID, Deleted: true}, o.DeleteWebhook(ctx, c.ID)
	})
}

func factsOfWebhook(w client.WebhookInfo) []Fact {
	return []Fact{
		{"ID", w.ID}, {"URL", w.URL}, {"TYPES", typesOf(w)}, {"DESCRIPTION", w.Description}, {"MISSED EVENTS", unlessZero(w.MissedEvents)},
		{"CONFIRMED", momentOr(&w.ConfirmedAt, "-")}, {"FAILING SINCE", moment(w.FailingSince)}, {"CREATED", moment(w.CreatedAt)},
	}
}

func typesOf(w client.WebhookInfo) string {
	if len(w.Types) == 0 {
		return "all"
	}
	texts := make([]string, len(w.Types))
	for i, t := range w.Types {
		texts[i] = string(t)
	}
	return strings.Join(texts, ",")
}
