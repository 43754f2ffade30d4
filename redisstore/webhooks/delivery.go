package webhooks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// States of a delivery.
const (
	DeliveryPending   kernel.Status = "pending"   // an attempt failed, and there will be another
	DeliveryDelivered kernel.Status = "delivered" // the receiver has answered 2xx
	DeliveryDead      kernel.Status = "dead"      // every attempt failed, and there will be none unless it is sent again by hand
)

// TestEvent is the type of a webhook's test event, which is in no feed.
const TestEvent = "webhook.test"

// Delivery is the telling of one event to one webhook.
type Delivery struct {
	ID       uuid.UUID
	Event    int64 // its number in the feed; 0 for a test
	Type     string
	Status   kernel.Status
	Attempts int
	Created  time.Time // when the first attempt began, or the test was made
	First    time.Time // of the attempts that count for giving up: Created, or when it was sent again by hand
	Next     time.Time // when the next attempt is due; zero unless it is pending
	Last     time.Time // when the last attempt ended; zero before the first
	Took     time.Duration
	Answer   int    // HTTP status of the last answer; 0 for none
	Error    string // why the last attempt failed, "" if it did not

	Stored string
}

// DeliveryID returns the id of the delivery of an event: the same from each instance, however often it is sent. Receivers know a repetition
// by it. It is a UUIDv8 (RFC 9562).
func DeliveryID(webhook uuid.UUID, event int64) uuid.UUID {
	return hashedID(webhook, "event", event)
}

// URLTestID returns the id of the test that a version of a webhook's URL gets by itself.
func URLTestID(webhook uuid.UUID, version int64) uuid.UUID {
	return hashedID(webhook, "url", version)
}

func hashedID(webhook uuid.UUID, kind string, number int64) uuid.UUID {
	return uuid.NewHash(sha256.New(), webhook, binary.BigEndian.AppendUint64([]byte(kind), uint64(number)), 8)
}

// deliveryRecord is a delivery as Redis stores it. The names are short because there are many. Times are ms since 1970.
type deliveryRecord struct {
	Event    int64         `json:"n,omitzero"`
	Type     string        `json:"y"`
	Status   kernel.Status `json:"s"`
	Attempts int           `json:"a,omitzero"`
	Created  int64         `json:"c"`
	First    int64         `json:"f"`
	Next     int64         `json:"x,omitzero"`
	Last     int64         `json:"l,omitzero"`
	Took     int64         `json:"d,omitzero"` // ms
	Answer   int           `json:"h,omitzero"`
	Error    string        `json:"e,omitzero"`
}

// Record is the delivery as it is stored.
func (d Delivery) Record() (string, error) {
	text, err := json.Marshal(deliveryRecord{
		d.Event, d.Type, d.Status, d.Attempts, msOf(d.Created), msOf(d.First), msOf(d.Next), msOf(d.Last), d.Took.Milliseconds(), d.Answer, d.Error,
	})
	return string(text), err
}

func parseDelivery(id, text string) (Delivery, error) {
	var r deliveryRecord
	parsed, err := uuid.Parse(id)
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	if err != nil {
		return Delivery{}, fmt.Errorf("%w: record of a delivery: %v", redisclient.ErrReply, err)
	}
	return Delivery{
		ID: parsed, Event: r.Event, Type: r.Type, Status: r.Status, Attempts: r.Attempts, Created: timeOf(r.Created),
		First: timeOf(r.First), Next: timeOf(r.Next), Last: timeOf(r.Last), Took: time.Duration(r.Took) * time.Millisecond,
		Answer: r.Answer, Error: r.Error, Stored: text,
	}, nil
}

// msOf and timeOf convert times that may be zero.
func msOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

var (
	listDeliveries = kernel.NewScript("webhooks/list_deliveries", redisclient.Reads)
	sendDelivery   = kernel.NewSealedScript("webhooks/send_delivery")
)

// MostWaiting is how many deliveries of a webhook may wait: automatic retries, and as many sent by request. The last place is reserved
// for the automatic test of a new URL, because no event is sent before it succeeds.
const (
	MostWaiting = 2 * MostPending
	MostByHand  = MostWaiting - 1
)

// lookAgain is when a webhook is looked at that was to be woken by an instance that has died: later than any call ends.
const lookAgain = 2 * redisclient.CallTimeout

// Deliveries returns the deliveries that are kept of a webhook, newest first: those that wait, the last 100 that succeeded and
// the last 256 that were given up. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrUnknownWebhook.
func (s *Registry) Deliveries(ctx context.Context, key kernel.APIKey, webhook uuid.UUID) ([]Delivery, error) {
	keys := slices.Concat(s.WebhookKeys(key.Organization)[:2], []string{s.core.Keys.Deliveries(key.Organization, webhook)})
	r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), listDeliveries, keys, key.Credential(), webhook)
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
func readDeliveries(kept *redisclient.Reply) ([]Delivery, error) {
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
func (s *Registry) SendAgain(ctx context.Context, key kernel.APIKey, webhook, id uuid.UUID, now time.Time) (Delivery, error) {
	all, err := s.Deliveries(ctx, key, webhook)
	if err != nil {
		return Delivery{}, err
	}
	at := slices.IndexFunc(all, func(d Delivery) bool { return d.ID == id })
	if at < 0 {
		return Delivery{}, kernel.ErrUnknownDelivery
	}
	again := all[at]
	again.Status, again.Attempts, again.First, again.Next = DeliveryPending, 0, time.Time{}, now // the next attempt is the first again
	return again, s.sendNow(ctx, key, webhook, all[at].Stored, again, nil)
}

// SendTest sends a test event to the webhook. With idem, a repeated request sends none and returns the first as it was sent. Errors:
// those of Deliveries, *QuotaError; with idem ErrIdempotencyKeyReused and *RateError for the key.
func (s *Registry) SendTest(ctx context.Context, key kernel.APIKey, webhook uuid.UUID, idem *kernel.Idempotency, now time.Time) (Delivery, error) {
	now = now.Truncate(time.Millisecond) // as its record has it
	test := Delivery{ID: kernel.NewID(webhook), Type: TestEvent, Status: DeliveryPending, Created: now, Next: now}
	if idem != nil {
		text, err := test.Record()
		if err != nil {
			return Delivery{}, err
		}
		idem.Credential, idem.Seal = test.ID.String()+" "+text, kernel.Unsealed{}
	}
	err := s.sendNow(ctx, key, webhook, "", test, idem)
	if err != nil || !idem.IsReplay() {
		return test, err
	}
	id, text, _ := strings.Cut(idem.Credential, " ")
	return parseDelivery(id, text)
}

// sendNow stores a delivery as due and wakes the instance that delivers. idem is nil for no idempotency key.
func (s *Registry) sendNow(ctx context.Context, key kernel.APIKey, webhook uuid.UUID, found string, d Delivery, idem *kernel.Idempotency) error {
	text, err := d.Record()
	if err != nil {
		return err
	}
	if _, err := s.Webhook(ctx, key, webhook); err != nil { // checks the key before anything is woken
		return err
	}
	keys := slices.Concat(s.WebhookKeys(key.Organization)[:2], s.DeliveryKeys(key.Organization, webhook))
	counted := int64(0) // one that is kept is sent again whatever the quota
	if found == "" {
		counted = kernel.DeliverySize + int64(len(text))
	}
	return s.WakeFor(ctx, key.Organization, func() error {
		_, err := s.core.RunSealedByKey(ctx, key, sendDelivery, idem, counted, keys, key.Credential(), webhook, d.ID.String(), found, text, MostByHand)
		return err
	})
}
