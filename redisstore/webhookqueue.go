package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
)

var (
	wakeWebhooks     = newScript("webhooks/wake_webhooks", bestEffort)
	postponeWebhooks = newScript("webhooks/postpone_webhooks", bestEffort)
	listDueWebhooks  = newScript("webhooks/list_due_webhooks", reads)
	// wakeForGood is what the leader of a feed runs before it has Redis forget that the webhooks are to be woken. The queue may be on
	// another server, whose failover must not lose it.
	wakeForGood = newScript("webhooks/wake_webhooks", writes)
)

// farthestRetry is more than any delivery waits for its next attempt. What is set for later was set before Redis's clock went back.
const farthestRetry = 2 * time.Hour

// WakeWebhooks has an organization's webhooks looked at within so long. It may be called too often.
func (s *Store) WakeWebhooks(ctx context.Context, organization uuid.UUID, within time.Duration) error {
	_, err := s.client.Run(ctx, ownFlow, wakeWebhooks, []string{s.keys.webhookQueue()}, organization, within.Milliseconds())
	return err
}

// wakeFor does what gives an organization's webhooks something to do, and wakes them. An instance that dies in between has had them
// looked at later. The caller has checked the key. Errors: ErrOutcomeUnknown once do has returned.
func (s *Store) wakeFor(ctx context.Context, organization uuid.UUID, do func() error) error {
	if err := s.WakeWebhooks(ctx, organization, lookAgain); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return halfDone(s.WakeWebhooks(ctx, organization, 0))
}

// wakeWebhooks wakes the webhooks for the events that the leader of their feed has appended. Redis keeps that they are to be
// woken until take_agents.lua learns that they were, so that another leader does it if this one has ended.
func (d *feeds) wakeWebhooks(ctx context.Context, a *activeFeed) error {
	l := &a.leading
	if l.wake == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	if _, err := d.client.Run(ctx, ownFlow, wakeForGood, []string{d.keys.webhookQueue()}, a.organization, 0); err != nil {
		return err
	}
	l.wake, l.woken = "", l.wake
	return nil
}

// wakeTime bounds how long the queue of webhooks can keep the leader of a feed.
const wakeTime = leaseTime / 6

// PostponeWebhooks has an organization's webhooks looked at after so long, and returns the time that is set then. found is the
// time that the caller set before, zero for any: if it is another by now, there is news, and nothing is changed.
func (s *Store) PostponeWebhooks(ctx context.Context, organization uuid.UUID, found time.Time, after time.Duration) (time.Time, error) {
	return s.postponeWebhooks(ctx, organization, found, millis(after))
}

// ForgetWebhooks is PostponeWebhooks for good: until somebody wakes them.
func (s *Store) ForgetWebhooks(ctx context.Context, organization uuid.UUID, found time.Time) error {
	_, err := s.postponeWebhooks(ctx, organization, found, "")
	return err
}

func (s *Store) postponeWebhooks(ctx context.Context, organization uuid.UUID, found time.Time, delay string) (time.Time, error) {
	expected := ""
	if !found.IsZero() {
		expected = strconv.FormatInt(found.UnixMilli(), 10)
	}
	r, err := s.client.Run(ctx, ownFlow, postponeWebhooks, []string{s.keys.webhookQueue()}, organization, expected, delay)
	if err != nil {
		return time.Time{}, err
	}
	return r.TimeOrZero(0), r.Err
}

// DueWebhooks returns at most limit organizations whose webhooks are to be looked at now, the longest due first.
func (s *Store) DueWebhooks(ctx context.Context, limit int) ([]uuid.UUID, error) {
	r, err := s.client.Run(ctx, ownFlow, listDueWebhooks, []string{s.keys.webhookQueue()}, limit, farthestRetry.Milliseconds())
	if err != nil {
		return nil, err
	}
	due := r.List(0)
	organizations := make([]uuid.UUID, len(due.Values))
	for i := range due.Values {
		organizations[i] = due.ID(i)
	}
	return organizations, due.Err
}
