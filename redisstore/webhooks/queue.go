package webhooks

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

var (
	wakeWebhooks     = kernel.NewScript("webhooks/wake_webhooks", redisclient.BestEffort)
	postponeWebhooks = kernel.NewScript("webhooks/postpone_webhooks", redisclient.BestEffort)
	listDueWebhooks  = kernel.NewScript("webhooks/list_due_webhooks", redisclient.Reads)
)

// farthestRetry is more than any delivery waits for its next attempt. What is set for later was set before Redis's clock went back.
const farthestRetry = 2 * time.Hour

// WakeWebhooks has an organization's webhooks looked at within so long. It may be called too often.
func (s *Registry) WakeWebhooks(ctx context.Context, organization uuid.UUID, within time.Duration) error {
	_, err := s.core.Client.Run(ctx, kernel.OwnFlow, wakeWebhooks, []string{s.core.Keys.WebhookQueue()}, organization, within.Milliseconds())
	return err
}

// WakeFor does what gives an organization's webhooks something to do, and wakes them. An instance that dies in between has had them
// looked at later. The caller has checked the key. Errors: ErrOutcomeUnknown once do has returned.
func (s *Registry) WakeFor(ctx context.Context, organization uuid.UUID, do func() error) error {
	if err := s.WakeWebhooks(ctx, organization, lookAgain); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return kernel.HalfDone(s.WakeWebhooks(ctx, organization, 0))
}

// PostponeWebhooks has an organization's webhooks looked at after so long, and returns the time that is set then. found is the
// time that the caller set before, zero for any: if it is another by now, there is news, and nothing is changed.
func (s *Registry) PostponeWebhooks(ctx context.Context, organization uuid.UUID, found time.Time, after time.Duration) (time.Time, error) {
	return s.postponeWebhooks(ctx, organization, found, strconv.FormatInt(after.Milliseconds(), 10))
}

// ForgetWebhooks is PostponeWebhooks for good: until WakeWebhooks.
func (s *Registry) ForgetWebhooks(ctx context.Context, organization uuid.UUID, found time.Time) error {
	_, err := s.postponeWebhooks(ctx, organization, found, "")
	return err
}

func (s *Registry) postponeWebhooks(ctx context.Context, organization uuid.UUID, found time.Time, delay string) (time.Time, error) {
	expected := ""
	if !found.IsZero() {
		expected = strconv.FormatInt(found.UnixMilli(), 10)
	}
	r, err := s.core.Client.Run(ctx, kernel.OwnFlow, postponeWebhooks, []string{s.core.Keys.WebhookQueue()}, organization, expected, delay)
	if err != nil {
		return time.Time{}, err
	}
	return r.TimeOrZero(0), r.Err
}

// DueWebhooks returns at most limit organizations whose webhooks are to be looked at now, the longest due first.
func (s *Registry) DueWebhooks(ctx context.Context, limit int) ([]uuid.UUID, error) {
	r, err := s.core.Client.Run(ctx, kernel.OwnFlow, listDueWebhooks, []string{s.core.Keys.WebhookQueue()}, limit, farthestRetry.Milliseconds())
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
