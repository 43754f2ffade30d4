package feed

import (
	"context"

	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// wakeForGood is what the leader of a feed runs before it has Redis forget that the webhooks are to be woken. The queue may be on
// another server, whose failover must not lose it.
var wakeForGood = kernel.NewScript("webhooks/wake_webhooks", redisclient.Writes)

// WakeWebhooks wakes the webhooks for the events that the leader of their feed has appended. Redis keeps that they are to be
// woken until take_agents.lua learns that they were, so that another leader does it if this one has ended.
func (d *Feeds) WakeWebhooks(ctx context.Context, a *ActiveFeed) error {
	l := &a.Leading
	if l.Wake == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	if _, err := d.Client.Run(ctx, kernel.OwnFlow, wakeForGood, []string{d.Keys.WebhookQueue()}, a.Organization, 0); err != nil {
		return err
	}
	l.Wake, l.Woken = "", l.Wake
	return nil
}

// wakeTime bounds how long the queue of webhooks can keep the leader of a feed.
const wakeTime = LeaseTime / 6
