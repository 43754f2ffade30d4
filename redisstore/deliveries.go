package redisstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

var (
	listDeliveries = newScript("webhooks/list_deliveries", reads)
	sendDelivery   = newSealedScript("webhooks/send_delivery")
)

// MostWaiting is how many deliveries of a webhook may wait: automatic retries, and as many sent by request. The last place is reserved
// for the automatic test of a new URL, because no event is sent before it succeeds.
const (
	MostWaiting = 2 * MostPending
	mostByHand  = MostWaiting - 1
)

// lookAgain is when a webhook is looked at that was to be woken by an instance that has died: later than any call ends.
const lookAgain = 2 * callTimeout

// Deliveries returns the deliveries that are kept of a webhook, newest first: those that wait, the last 100 that succeeded and
// the last 256 that were given up. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrUnknownWebhook.
func (s *Store) Deliveries(ctx context.Context, key APIKey, webhook uuid.UUID) ([]Delivery, error) {
	keys := slices.Concat(s.webhookKeys(key.Organization)[:2], []string{s.keys.deliveries(key.Organization, webhook)})
	r, err := s.runByKey(ctx, key, s.proven.flow(key), listDeliveries, keys, key.credential(), webhook)
	if err != nil {
		return nil, err
	}
	all, err := readDeliveries(r.List(1))
	slices.SortFunc(all, func(a, b Delivery) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Event, a.Event), cmp.Compare(b.ID.String(), a.ID.String()))
	})
	return all, err
}

// readDeliveries reads deliveries from an array of ids and records. An empty record is that of a delivery that was forgotten.
func readDeliveries(kept *reply) ([]Delivery, error) {
	all := make([]Delivery, 0, len(kept.Values)/2)
	for i := 0; i+1 < len(kept.Values); i += 2 {
		if kept.Text(i+1) == "" {
			continue
		}
		d, err := parseDelivery(kept.Text(i), kept.Text(i+1))
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, kept.Err
}

// SendAgain makes a delivery that is kept due at once, with 24 hours of retries before it. Errors: those of Deliveries,
// ErrUnknownDelivery, ErrChangedMeanwhile, *QuotaError.
func (s *Store) SendAgain(ctx context.Context, key APIKey, webhook, id uuid.UUID, now time.Time) (Delivery, error) {
	all, err := s.Deliveries(ctx, key, webhook)
	if err != nil {
		return Delivery{}, err
	}
	at := slices.IndexFunc(all, func(d Delivery) bool { return d.ID == id })
	if at < 0 {
		return Delivery{}, ErrUnknownDelivery
	}
	again := all[at]
	again.Status, again.Attempts, again.First, again.Next = DeliveryPending, 0, time.Time{}, now // the next attempt is the first again
	return again, s.sendNow(ctx, key, webhook, all[at].stored, again, nil)
}

// SendTest sends a test event to the webhook. With idem, a repeated request sends none and returns the first as it was sent. Errors:
// those of Deliveries, *QuotaError; with idem ErrIdempotencyKeyReused and *RateError for the key.
func (s *Store) SendTest(ctx context.Context, key APIKey, webhook uuid.UUID, idem *Idempotency, now time.Time) (Delivery, error) {
	now = now.Truncate(time.Millisecond) // as its record has it
	test := Delivery{ID: NewID(webhook), Type: TestEvent, Status: DeliveryPending, Created: now, Next: now}
	if idem != nil {
		text, err := test.record()
		if err != nil {
			return Delivery{}, err
		}
		idem.Credential, idem.Seal = test.ID.String()+text, unsealed{}
	}
	err := s.sendNow(ctx, key, webhook, "", test, idem)
	if err != nil || !isReplayed(idem) {
		return test, err
	}
	return parseDelivery(idem.Credential[:idTextSize], idem.Credential[idTextSize:])
}

const idTextSize = 36 // bytes of an id as text

// unsealed keeps a delivery in place of a credential, as it is: it is no secret.
type unsealed struct{}

func (unsealed) Seal(text string) string         { return text }
func (unsealed) Open(text string) (string, bool) { return text, len(text) > idTextSize }

// sendNow stores a delivery as due and wakes the instance that delivers. idem is nil for no idempotency key.
func (s *Store) sendNow(ctx context.Context, key APIKey, webhook uuid.UUID, found string, d Delivery, idem *Idempotency) error {
	text, err := d.record()
	if err != nil {
		return err
	}
	if _, err := s.Webhook(ctx, key, webhook); err != nil { // checks the key before anything is woken
		return err
	}
	keys := slices.Concat(s.webhookKeys(key.Organization)[:2], s.deliveryKeys(key.Organization, webhook))
	counted := int64(0) // one that is kept is sent again whatever the quota
	if found == "" {
		counted = deliverySize + int64(len(text))
	}
	return s.wakeFor(ctx, key.Organization, func() error {
		_, err := s.runSealedByKey(ctx, key, sendDelivery, idem, counted, keys, key.credential(), webhook, d.ID.String(), found, text, mostByHand)
		return err
	})
}
