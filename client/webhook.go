package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// WebhookParams describe a new webhook.
type WebhookParams struct {
	URL         string      `json:"url"`            // https, with a public address
	Types       []EventType `json:"types,omitzero"` // of events; empty: all
	Description string      `json:"description,omitzero"`

	IdempotencyKey string `json:"-"` // empty: a random one
}

// WebhookChanges are changes of a webhook. The zero value of a field leaves it as it is.
type WebhookChanges struct {
	URL         string       `json:"url,omitzero"`
	Types       *[]EventType `json:"types,omitzero"` // of events; empty: all
	Description *string      `json:"description,omitzero"`
}

// WebhookInfo is a webhook: it sends the organization's events to a URL, as Standard Webhooks describes.
type WebhookInfo struct {
	ID           string      `json:"id"`
	URL          string      `json:"url"`   // whole only for an admin's key; others see scheme and host: https://receiver.example/…
	Types        []EventType `json:"types"` // empty: all
	Description  string      `json:"description"`
	ConfirmedAt  time.Time   `json:"confirmed_at,omitzero"`  // when the receiver at this URL first accepted a test; zero: it has yet to, and gets tests only
	MissedEvents int64       `json:"missed_events"`          // that the service no longer kept when it came to them
	FailingSince time.Time   `json:"failing_since,omitzero"` // zero: the last attempt succeeded
	CreatedAt    time.Time   `json:"created_at"`             //
	Secret       Credential  `json:"secret,omitzero"`        // whsec_…, only in the response to its creation
}

// RotateWebhookParams are the options of a rotation of a webhook's secret. The zero value works.
type RotateWebhookParams struct {
	Grace *time.Duration // how long requests are signed by the old secret too, to the second; nil: the service's default, a day

	IdempotencyKey string // empty: a random one
}

// Delivery is one event on its way to a webhook's receiver.
type Delivery struct {
	ID             string    `json:"id"` // the webhook-id that the receiver sees
	WebhookID      string    `json:"webhook_id"`
	EventSequence  int64     `json:"event_seq,omitzero"` // 0: a test
	Type           EventType `json:"type"`               // of the event; webhook.test: a test
	Status         string    `json:"status"`             // pending, delivered or dead
	AttemptCount   int64     `json:"attempt_count"`
	ResponseStatus int       `json:"response_status,omitzero"` // of the last attempt; 0: there was no response
	Error          string    `json:"error,omitzero"`           // why the last attempt failed
	DurationMS     int64     `json:"duration_ms,omitzero"`     // of the last attempt
	CreatedAt      time.Time `json:"created_at"`
	LastAttemptAt  time.Time `json:"last_attempt_at,omitzero"`
	NextAttemptAt  time.Time `json:"next_attempt_at,omitzero"`
}

// DeliveryFilter narrows a list of deliveries. The zero value selects all.
type DeliveryFilter struct {
	Status string // pending, delivered or dead
}

// CreateWebhook creates a webhook. It gets a test at once, and events when it has accepted one. Only this response holds its
// secret, with which a library of Standard Webhooks verifies what arrives.
// An organization has at most 32; beyond that the error is *QuotaExceeded.
func (o *Organization) CreateWebhook(ctx context.Context, p WebhookParams) (WebhookInfo, error) {
	return decoded[WebhookInfo](ctx, o.caller, o.caller.client.keyed(webhooksPath, p.IdempotencyKey, p))
}

// Webhooks lists the organization's webhooks, newest first.
func (o *Organization) Webhooks(ctx context.Context) ([]WebhookInfo, error) {
	return decoded[[]WebhookInfo](ctx, o.caller, call{method: http.MethodGet, path: webhooksPath})
}

// GetWebhook reads a webhook.
func (o *Organization) GetWebhook(ctx context.Context, id string) (WebhookInfo, error) {
	return decoded[WebhookInfo](ctx, o.caller, call{method: http.MethodGet, path: webhookPath(id)})
}

// UpdateWebhook changes a webhook.
func (o *Organization) UpdateWebhook(ctx context.Context, id string, changes WebhookChanges) (WebhookInfo, error) {
	if changes.Types != nil {
		changes.Types = new(append([]EventType{}, *changes.Types...)) // null would be refused
	}
	return decoded[WebhookInfo](ctx, o.caller, call{method: http.MethodPatch, path: webhookPath(id), body: changes, semantics: idempotent})
}

// DeleteWebhook deletes a webhook with its deliveries. A request that is under way may still arrive.
func (o *Organization) DeleteWebhook(ctx context.Context, id string) error {
	return o.caller.remove(ctx, webhookPath(id))
}

// RotateWebhookSecret replaces a webhook's secret. Until PreviousExpiresAt requests carry signatures by both.
func (o *Organization) RotateWebhookSecret(ctx context.Context, id string, p RotateWebhookParams) (RotatedSecret, error) {
	body := graceBody{secondsOrNil(p.Grace)}
	return decoded[RotatedSecret](ctx, o.caller, o.caller.client.keyed(webhookPath(id)+"/rotate", p.IdempotencyKey, body))
}

// TestWebhook sends an event of the type webhook.test to the webhook. The delivery is returned before its first attempt.
func (o *Organization) TestWebhook(ctx context.Context, id string) (Delivery, error) {
	return decoded[Delivery](ctx, o.caller, o.caller.client.keyed(webhookPath(id)+"/test", "", struct{}{}))
}

// Deliveries yields a webhook's deliveries, newest first: those that wait, and those last delivered and last given up.
func (o *Organization) Deliveries(ctx context.Context, webhook string, f DeliveryFilter) iter.Seq2[Delivery, error] {
	return list[Delivery](ctx, o.caller, deliveriesPath(webhook), perPage, "status", f.Status)
}

// RetryDelivery sends a delivery again at once, under the same id, and with the service's retries before it.
func (o *Organization) RetryDelivery(ctx context.Context, webhook, id string) (Delivery, error) {
	path := deliveriesPath(webhook) + "/" + url.PathEscape(id) + "/retry"
	return decoded[Delivery](ctx, o.caller, call{method: http.MethodPost, path: path, semantics: idempotent})
}
