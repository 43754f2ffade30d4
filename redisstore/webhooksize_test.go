package redisstore

import (
	"strings"
	"testing"
	"time"

	"remit/redisstore/webhooks"
)

// What a webhook makes Redis keep, with as many deliveries of each state as there may be, with the longest records, and with the
// longest settings, is less than what is promised for one. An organization has MostWebhooks of them.
func TestAWebhookWithAllThatItMayKeepTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	const most = 512 << 10 // bytes; docs/webhooks.md
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		hook := must(s.CreateWebhook(t.Context(), w.key, NewID(w.key.Organization), longestSettings(), nil))(t)
		claim := w.claimHooks(t, s, NewRootID())
		progress, number := hook.Progress, int64(1)<<52
		report := func(status Status, count int) {
			outcomes := make([]webhooks.Delivery, count)
			for i := range outcomes {
				number++
				outcomes[i] = longestDelivery(hook, number, status)
			}
			progress = note(t, s, claim, hook.ID, progress, outcomes...)
		}
		report(webhooks.DeliveryDelivered, 300)
		report(webhooks.DeliveryDead, 600)
		report(webhooks.DeliveryPending, webhooks.MostPending)
		waiting := webhooks.MostPending
		for _, d := range must(s.Deliveries(t.Context(), w.key, hook.ID))(t) {
			if d.Status == webhooks.DeliveryDead && waiting < webhooks.MostByHand { // as many as may wait are sent again by hand
				must(s.SendAgain(t.Context(), w.key, hook.ID, d.ID, time.Now()))(t)
				waiting++
			}
		}
		_, err := s.SendTest(t.Context(), w.key, hook.ID, nil, time.Now())
		wantError(t, "one more", err, &QuotaError{Quota: "webhook_deliveries", Used: webhooks.MostByHand, Max: webhooks.MostByHand})
		report(webhooks.DeliveryPending, 1) // the test that a URL gets by itself
		report(webhooks.DeliveryDead, 600)
		taken, records := int64(0), must(peek(t, s).HLen(t.Context(), s.keys.Deliveries(w.key.Organization, hook.ID)).Result())(t)
		keys := append(s.DeliveryKeys(w.key.Organization, hook.ID), s.keys.Webhooks(w.key.Organization), s.keys.WebhookProgress(w.key.Organization))
		for _, key := range keys {
			taken += must(peek(t, s).MemoryUsage(t.Context(), key, 0).Result())(t)
		}
		if records != 868 || taken > most {
			t.Errorf("%d records, %d bytes; 868 and at most %d are promised", records, taken, most)
		}
	})
}

// longestDelivery is a delivery whose record is as long as any.
func longestDelivery(hook webhooks.Webhook, number int64, status Status) webhooks.Delivery {
	at := time.UnixMilli(9_999_999_999_999)
	return webhooks.Delivery{
		ID: webhooks.DeliveryID(hook.ID, number), Event: number, Type: "session.request_approved", Status: status, Attempts: 999, Created: at, First: at,
		Next: at, Last: at, Took: 15 * time.Second, Answer: 599, Error: "the receiver redirects, which is not followed",
	}
}

// longestSettings are settings of a webhook as long as the API takes them.
func longestSettings() webhooks.Settings {
	settings := webhooks.Settings{URL: "https://example.com/" + strings.Repeat("u", 2028), Description: strings.Repeat("\U0001F600", 500)}
	for range 64 {
		settings.Types = append(settings.Types, "session.request_approved")
	}
	for range 4 {
		settings.Secrets = append(settings.Secrets, webhooks.Secret{Sealed: strings.Repeat("s", 128), Until: 9_999_999_999_999})
	}
	return settings
}
