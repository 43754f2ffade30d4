package cli

import (
	"context"
	"strconv"
	"time"

	"remit/client"
)

type listDeliveries struct {
	asOrganization
	webhookID
	Status string `env:"-" enum:"pending,delivered,dead,all" default:"all" help:"List only deliveries in this status: pending, delivered, dead or all. The default is all."`
}

// Run lists the deliveries.
func (c *listDeliveries) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		found := o.Deliveries(ctx, c.ID, client.DeliveryFilter{Status: unlessAll(c.Status)})
		return list(c.Output, found, "ID\tSEQ\tTYPE\tSTATUS\tATTEMPTS\tRESPONSE\tCREATED\tNEXT ATTEMPT\tERROR", func(d client.Delivery) []string {
			return []string{
				d.ID, dashed(unlessZero(d.EventSequence)), string(d.Type), d.Status, strconv.FormatInt(d.AttemptCount, 10),
				dashed(unlessZero(int64(d.ResponseStatus))), moment(d.CreatedAt), momentOr(&d.NextAttemptAt, "-"), d.Error,
			}
		})
	})
}

type retryDelivery struct {
	asOrganization
	Webhook string `arg:"" name:"webhook-id" help:"The webhook's id."`
	ID      string `arg:"" name:"delivery-id" help:"The delivery's id."`
}

// Run sends the delivery again and shows it.
func (c *retryDelivery) Run() error {
	return callAndShow(c, factsOfDelivery, func(ctx context.Context, o *client.Organization) (client.Delivery, error) {
		return o.RetryDelivery(ctx, c.Webhook, c.ID)
	})
}

func factsOfDelivery(d client.Delivery) []Fact {
	took := ""
	if !d.LastAttemptAt.IsZero() {
		took = (time.Duration(d.DurationMS) * time.Millisecond).String()
	}
	return []Fact{
		{"ID", d.ID}, {"WEBHOOK", d.WebhookID}, {"SEQ", unlessZero(d.EventSequence)}, {"TYPE", string(d.Type)}, {"STATUS", d.Status},
		{"ATTEMPTS", strconv.FormatInt(d.AttemptCount, 10)}, {"RESPONSE", unlessZero(int64(d.ResponseStatus))}, {"ERROR", d.Error},
		{"TOOK", took}, {"CREATED", moment(d.CreatedAt)}, {"LAST ATTEMPT", moment(d.LastAttemptAt)}, {"NEXT ATTEMPT", moment(d.NextAttemptAt)},
	}
}
