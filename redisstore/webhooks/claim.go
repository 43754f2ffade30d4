package webhooks

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

var (
	claimWebhooks     = kernel.NewScript("webhooks/claim_webhooks", redisclient.Writes)
	releaseWebhooks   = kernel.NewScript("webhooks/release_webhooks", redisclient.BestEffort)
	listDueDeliveries = kernel.NewScript("webhooks/list_due_deliveries", redisclient.Reads)
	noteDeliveries    = kernel.NewScript("webhooks/note_deliveries", redisclient.Writes)
)

// MostPending is how many deliveries of a webhook wait for a retry before it gets no new ones.
const MostPending = 256

// Claim is the right of one instance to deliver for an organization.
type Claim struct {
	Organization uuid.UUID
	Holder       uuid.UUID
	Term         int64
	Webhooks     []Webhook // when it was claimed or renewed
}

// ClaimWebhooks claims or renews the right to deliver an organization's events for so long. Errors: ErrWebhooksClaimed, by
// another holder; ErrUnknownWebhook if the organization has none.
func (s *Registry) ClaimWebhooks(ctx context.Context, organization, holder uuid.UUID, term time.Duration) (Claim, error) {
	keys := s.WebhookKeys(organization)[1:]
	r, err := s.core.Client.Run(ctx, redisclient.Flow{Owner: organization}, claimWebhooks, keys, holder, term.Milliseconds())
	if err != nil {
		return Claim{}, err
	}
	c := Claim{Organization: organization, Holder: holder, Term: r.Number(0)}
	c.Webhooks, err = webhooksAt(r, 2)
	return c, err
}

// ReleaseWebhooks ends a claim before its term.
func (s *Registry) ReleaseWebhooks(ctx context.Context, c Claim) error {
	keys := []string{s.core.Keys.WebhookProgress(c.Organization)}
	_, err := s.core.Client.Run(ctx, redisclient.Flow{Owner: c.Organization}, releaseWebhooks, keys, c.Holder, c.Term)
	return err
}

// DueDeliveries are the deliveries of a webhook that are due.
type DueDeliveries struct {
	Settings Settings  // of the webhook, as they are now
	Now      time.Time // by Redis's clock
	Waiting  int       // all that wait, due or not
	Later    time.Time // when the next is due that is not due now; zero for none
	Due      []Delivery
}

// DueDeliveries returns at most limit deliveries of a webhook that are due, the longest due first. Errors: ErrUnknownWebhook.
func (s *Registry) DueDeliveries(ctx context.Context, organization, webhook uuid.UUID, limit int) (DueDeliveries, error) {
	keys := []string{s.core.Keys.Webhooks(organization), s.core.Keys.PendingDeliveries(organization, webhook), s.core.Keys.Deliveries(organization, webhook)}
	r, err := s.core.Client.Run(ctx, redisclient.Flow{Owner: organization}, listDueDeliveries, keys, webhook, limit, farthestRetry.Milliseconds())
	if err != nil {
		return DueDeliveries{}, err
	}
	d := DueDeliveries{Now: r.Time(0), Waiting: int(r.Number(1)), Later: r.TimeOrZero(2)}
	if d.Settings, err = parseWebhookSettings(r.Text(4)); err != nil {
		return DueDeliveries{}, err
	}
	d.Due, err = readDeliveries(r.List(3))
	return d, cmp.Or(err, r.Err)
}

// WebhookSettings returns the settings of a webhook as they are now. Errors: ErrUnknownWebhook.
func (s *Registry) WebhookSettings(ctx context.Context, organization, webhook uuid.UUID) (Settings, error) {
	stored, err := s.core.Client.Call(ctx, redisclient.Flow{Owner: organization}, redisclient.Reads, "hget", s.core.Keys.Webhooks(organization), string(webhook[:]))
	if err != nil {
		return Settings{}, err
	}
	text, found := stored.(string)
	if !found {
		return Settings{}, kernel.ErrUnknownWebhook
	}
	return parseWebhookSettings(text)
}

// DeliveryReport is what an instance has done for a webhook since it read its progress.
type DeliveryReport struct {
	Webhook  uuid.UUID
	Found    Progress   // as it was read
	Reached  Progress   // its version is ignored
	Outcomes []Delivery // of attempts
	Held     []Delivery // without one, until the webhook is confirmed; given up when that took too long
	Hurry    bool       // makes everything due that waits
}

// NoteDeliveries stores a report, and returns the progress after it. Errors: ErrUnknownWebhook; ErrChangedMeanwhile if the
// claim or the progress is another by now, also when this report was stored before.
func (s *Registry) NoteDeliveries(ctx context.Context, c Claim, report DeliveryReport) (Progress, error) {
	reached := report.Reached
	reached.Version = report.Found.Version + 1
	outcomes, err := outcomeLines(slices.Concat(report.Outcomes, report.Held))
	if err != nil {
		return Progress{}, err
	}
	hurry := ""
	if report.Hurry {
		hurry = "1"
	}
	keys := slices.Concat(s.WebhookKeys(c.Organization)[1:], s.DeliveryKeys(c.Organization, report.Webhook),
		[]string{s.core.Keys.Organization(c.Organization)})
	_, err = s.core.Client.Run(ctx, redisclient.Flow{Owner: c.Organization}, noteDeliveries, keys, c.Term, report.Webhook, report.Found.text(),
		reached.text(), outcomes, hurry)
	return reached, err
}

// outcomeLines writes deliveries as note_deliveries.lua takes them.
func outcomeLines(outcomes []Delivery) (string, error) {
	var lines strings.Builder
	for _, d := range outcomes {
		record, err := d.Record()
		if err != nil {
			return "", err
		}
		at := d.Last
		if d.Status == DeliveryPending {
			at = d.Next
		}
		for _, word := range []string{string(d.Status), strconv.FormatInt(msOf(at), 10), d.ID.String()} {
			lines.WriteString(word + " ")
		}
		lines.WriteString(record + "\n") // JSON has no line break in a text
	}
	return lines.String(), nil
}
