package feed

import (
	"context"
	"errors"

	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// Debt is what the leader of a feed has yet to write to another key, which may be on another server. The feed's head keeps it until
// take_agents.lua learns that it is paid, so that another leader pays it if this one has ended.
type Debt struct {
	Owed string // "" for nothing
	Paid string // the last one that was paid, "" for none
}

func (d *Debt) pay(ctx context.Context, write func(ctx context.Context, owed string) error) error {
	if d.Owed == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, payTime)
	defer cancel()
	if err := write(ctx, d.Owed); err != nil {
		return err
	}
	d.Owed, d.Paid = "", d.Owed
	return nil
}

// payTime bounds how long another key can keep the leader of a feed.
const payTime = LeaseTime / 6

// wakeForGood waits for replicas where writes are confirmed so: a failover must not lose what the head keeps no longer.
var wakeForGood = kernel.NewScript("webhooks/wake_webhooks", redisclient.Writes)

// PayDebts wakes the webhooks for the events that the leader has appended, and notes in the queue what they make due.
func (d *Feeds) PayDebts(ctx context.Context, a *ActiveFeed) error {
	wake := func(ctx context.Context, _ string) error {
		_, err := d.Client.Run(ctx, kernel.OwnFlow, wakeForGood, []string{d.Keys.WebhookQueue()}, a.Organization, 0)
		return err
	}
	note := func(ctx context.Context, from string) error { return d.NoteDue(ctx, a.Organization, from) }
	return errors.Join(a.Leading.Wake.pay(ctx, wake), a.Leading.Due.pay(ctx, note))
}
