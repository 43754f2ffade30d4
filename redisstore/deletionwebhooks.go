package redisstore

import (
	"context"

	"github.com/google/uuid"
)

// removeWebhooks removes the organization's webhooks and their deliveries, all with one command: a report that comes later finds no
// webhook, and writes nothing.
func (d *deletion) removeWebhooks(ctx context.Context) error {
	index := d.keys.webhooks(d.organization)
	stored, err := d.client.Redis().HGetAll(ctx, index).Result() // which the operator may run
	if err != nil {
		return d.client.Classify(err, reads)
	}
	doomed := []string{index}
	for name := range stored {
		if id, err := uuid.FromBytes([]byte(name)); err == nil {
			doomed = append(doomed, d.deliveryKeys(d.organization, id)...)
		}
	}
	return d.unlink(ctx, [][]string{doomed})
}
