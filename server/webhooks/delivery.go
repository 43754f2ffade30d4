package webhooks

import (
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/redisstore/webhooks"
	"remit/server/internal/web"
)

// mostDeliveryBytes is about how much the deliveries that are kept of a webhook may have.
const mostDeliveryBytes = 868 * 600

var deliveryStatuses = []redisstore.Status{webhooks.DeliveryPending, webhooks.DeliveryDelivered, webhooks.DeliveryDead}

// deliveryAnswer is the delivery of one event to one webhook.
type deliveryAnswer struct {
	ID       uuid.UUID         `json:"id"`
	Webhook  uuid.UUID         `json:"webhook_id"`
	Event    int64             `json:"event_seq,omitzero"` // absent for a test
	Type     string            `json:"type"`
	Status   redisstore.Status `json:"status"`
	Attempts int               `json:"attempt_count"`
	Answer   int               `json:"response_status,omitzero"` // of the last attempt, like the two that follow
	Error    string            `json:"error,omitzero"`
	Took     *int64            `json:"duration_ms,omitzero"`
	Created  web.Timestamp     `json:"created_at"`
	Last     web.Timestamp     `json:"last_attempt_at,omitzero"`
	Next     web.Timestamp     `json:"next_attempt_at,omitzero"`
}

func deliveryOf(webhook uuid.UUID, d webhooks.Delivery) deliveryAnswer {
	a := deliveryAnswer{
		ID: d.ID, Webhook: webhook, Event: d.Event, Type: d.Type, Status: d.Status, Attempts: d.Attempts, Answer: d.Answer,
		Error: d.Error, Created: web.Timestamp(d.Created), Last: web.Timestamp(d.Last), Next: web.Timestamp(d.Next),
	}
	if !d.Last.IsZero() {
		a.Took = new(d.Took.Milliseconds())
	}
	return a
}

// listDeliveries lists the deliveries that are kept of a webhook.
func (h *Handlers) listDeliveries(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	query, err := web.ReadQuery(ctx, deliveryStatuses)
	if err != nil {
		return err
	}
	if err := h.front.ReserveAnswer(ctx, mostDeliveryBytes); err != nil {
		return err
	}
	all, err := h.store.Deliveries(web.RequestContext(ctx), key, id)
	if err != nil {
		return err
	}
	page, next := pageOfDeliveries(all, query)
	web.AnnounceNext(ctx, next)
	return web.AnswerEach(ctx, func(d webhooks.Delivery) deliveryAnswer { return deliveryOf(id, d) }, page, nil)
}

// pageOfDeliveries returns the page that a query asks for, and the id that the next one begins behind, uuid.Nil if there is none. A
// cursor whose delivery is forgotten begins at the newest: nothing that is kept is passed over.
func pageOfDeliveries(all []webhooks.Delivery, q redisstore.Query) (page []webhooks.Delivery, next uuid.UUID) {
	for i, d := range all {
		if q.Before != uuid.Nil && d.ID == q.Before {
			all = all[i+1:]
			break
		}
	}
	for _, d := range all {
		if q.Status != "" && d.Status != q.Status {
			continue
		}
		if len(page) == q.Limit {
			return page, page[len(page)-1].ID
		}
		page = append(page, d)
	}
	return page, uuid.Nil
}

// retryDelivery sends a delivery again, at once.
func (h *Handlers) retryDelivery(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	delivery, err := web.PathIDNamed(ctx, "delivery_id")
	if err != nil {
		return err
	}
	if err := web.Decode(ctx, &web.Nothing{}); err != nil {
		return err
	}
	again, err := h.store.SendAgain(web.RequestContext(ctx), key, id, delivery, time.Now())
	if err != nil {
		return err
	}
	return web.Answer(ctx, deliveryOf(id, again))
}

// testWebhook sends a test event to a webhook. The response shows the delivery before its first attempt.
func (h *Handlers) testWebhook(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	if err := web.Decode(ctx, &web.Nothing{}); err != nil {
		return err
	}
	idempotency, err := web.IdempotencyOf(ctx, "test webhook", id)
	if err != nil {
		return err
	}
	sent, err := h.store.SendTest(web.RequestContext(ctx), key, id, idempotency, time.Now())
	if err != nil {
		return err
	}
	return web.Answer(ctx, deliveryOf(id, sent))
}
