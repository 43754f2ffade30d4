package webhooks

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/outbound"
	"remit/internal/webhook"
	"remit/redisstore"
	"remit/redisstore/webhooks"
	"remit/server/internal/access"
	"remit/server/internal/web"
	"remit/server/records"
)

// Register registers the routes of all operations.
func (h *Handlers) Register(r *web.Routes) {
	r.Post("/v1/webhooks", redisstore.Admin, access.ByKey(h.createWebhook))
	r.Get("/v1/webhooks", redisstore.Viewer, access.ByKey(h.listWebhooks))
	r.Get("/v1/webhooks/{id}", redisstore.Viewer, access.ByKeyAt(h.getWebhook))
	r.Patch("/v1/webhooks/{id}", redisstore.Admin, access.ByKeyAt(h.changeWebhook))
	r.Delete("/v1/webhooks/{id}", redisstore.Admin, access.ByKeyAt(h.deleteWebhook))
	r.Post("/v1/webhooks/{id}/rotate", redisstore.Admin, access.ByKeyAt(h.rotateWebhook))
	r.Post("/v1/webhooks/{id}/test", redisstore.Admin, access.ByKeyAt(h.testWebhook))
	r.Get("/v1/webhooks/{id}/deliveries", redisstore.Viewer, access.ByKeyAt(h.listDeliveries))
	r.Post("/v1/webhooks/{id}/deliveries/{delivery_id}/retry", redisstore.Admin, access.ByKeyAt(h.retryDelivery))
}

const (
	maxWebhookDescription = 500   // characters
	defaultWebhookGrace   = 86400 // seconds that a replaced secret still signs
)

// webhookRequest creates or changes a webhook.
type webhookRequest struct {
	URL         web.Optional[string]   `json:"url"`
	Types       web.Optional[[]string] `json:"types"`
	Description web.Optional[string]   `json:"description"`
}

func (r *webhookRequest) check(v *web.Validation, allowPlain bool) {
	if r.URL.Given {
		if err := outbound.CheckURL(r.URL.Value, allowPlain); err != nil {
			v.Add("url", err.Error())
		}
	}
	records.CheckEventTypes(v, "types", r.Types.Value)
	v.Require(utf8.RuneCountInString(r.Description.Value) <= maxWebhookDescription, "description", "must have at most 500 characters")
}

// apply writes what is given into the settings.
func (r *webhookRequest) apply(settings *webhooks.Settings) {
	settings.URL = r.URL.Or(settings.URL)
	settings.Types = r.Types.Or(settings.Types)
	settings.Description = r.Description.Or(settings.Description)
}

type webhookAnswer struct {
	ID          uuid.UUID     `json:"id"`
	URL         string        `json:"url"`
	Types       []string      `json:"types"` // [] for all
	Description string        `json:"description"`
	Secret      string        `json:"secret,omitzero"` // in the response to its creation only
	Missed      int64         `json:"missed_events"`
	Confirmed   web.Timestamp `json:"confirmed_at,omitzero"` // when its URL's receiver first accepted a test; absent before
	Failing     web.Timestamp `json:"failing_since,omitzero"`
	Created     web.Timestamp `json:"created_at"`
}

// webhookOf is a webhook as the key that read it may see it: the URL of a chat service is a credential.
func webhookOf(w webhooks.Webhook) webhookAnswer {
	types := w.Settings.Types
	if types == nil {
		types = []string{}
	}
	url := w.Settings.URL
	if w.Reader != redisstore.Admin {
		url = webhook.MaskURL(url)
	}
	return webhookAnswer{
		ID: w.ID, URL: url, Types: types, Description: w.Settings.Description, Missed: w.Progress.Missed,
		Confirmed: web.Timestamp(w.Confirmed()), Failing: web.Timestamp(w.Progress.Failing), Created: web.Timestamp(w.Created()),
	}
}

// createWebhook creates a webhook. It gets a test at once, and the events from now on when it is confirmed.
func (h *Handlers) createWebhook(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	var request webhookRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	var v web.Validation
	v.Require(request.URL.Given, "url", "is required")
	request.check(&v, h.options.AllowPrivate)
	if err := v.Err(); err != nil {
		return err
	}
	created, secret, err := h.makeWebhook(ctx, key, request)
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	shown := webhookOf(created)
	shown.Secret = secret
	return web.AnswerCreated(ctx, "/v1/webhooks/"+created.ID.String(), shown)
}

// makeWebhook stores a webhook with a secret of its own, which it returns.
func (h *Handlers) makeWebhook(ctx *fasthttp.RequestCtx, key redisstore.APIKey, request webhookRequest) (webhooks.Webhook, string, error) {
	id, secret := redisstore.NewID(key.Organization), webhook.NewSecret()
	idempotency, err := web.SealedIdempotency(ctx, "create webhook", key.Organization, webhook.FormatSecret(secret))
	if err != nil {
		return webhooks.Webhook{}, "", err
	}
	settings := webhooks.Settings{Secrets: []webhooks.Secret{webhook.SealSecret(h.options.Encryption, id, secret)}}
	request.apply(&settings)
	created, err := h.store.CreateWebhook(web.RequestContext(ctx), key, id, settings, idempotency)
	return created, web.CredentialOf(webhook.FormatSecret(secret), idempotency), err
}

func (h *Handlers) listWebhooks(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	all, err := h.store.Webhooks(web.RequestContext(ctx), key)
	slices.Reverse(all) // newest first
	return web.AnswerEach(ctx, webhookOf, all, err)
}

func (h *Handlers) getWebhook(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	found, err := h.store.Webhook(web.RequestContext(ctx), key, id)
	return web.AnswerOf(ctx, webhookOf, found, err)
}

func (h *Handlers) changeWebhook(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	var request webhookRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	var v web.Validation
	v.Require(request.URL.Given || request.Types.Given || request.Description.Given, "", "name at least one of url, types and description")
	request.check(&v, h.options.AllowPrivate)
	if err := v.Err(); err != nil {
		return err
	}
	changed, err := h.store.ChangeWebhook(web.RequestContext(ctx), key, id, nil, func(settings *webhooks.Settings) error {
		request.apply(settings)
		return nil
	})
	return web.AnswerOf(ctx, webhookOf, changed, err)
}

func (h *Handlers) deleteWebhook(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	return web.AnswerNothing(ctx, h.store.DeleteWebhook(web.RequestContext(ctx), key, id))
}

type rotatedWebhookAnswer struct {
	Secret          string        `json:"secret"`
	PreviousExpires web.Timestamp `json:"previous_expires_at"`
}

// rotateWebhook gives a webhook a new secret. Until the grace time ends, requests carry signatures by those before it too.
func (h *Handlers) rotateWebhook(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	grace, err := web.DecodeGrace(ctx, defaultWebhookGrace)
	if err != nil {
		return err
	}
	secret := webhook.NewSecret()
	idempotency, err := web.SealedIdempotency(ctx, "rotate webhook", id, webhook.FormatSecret(secret))
	if err != nil {
		return err
	}
	now := time.Now()
	changed, err := h.store.ChangeWebhook(web.RequestContext(ctx), key, id, idempotency, func(settings *webhooks.Settings) error {
		next := webhook.SealSecret(h.options.Encryption, id, secret)
		settings.Secrets = webhook.Rotate(settings.Secrets, next, now, now.Add(grace))
		return nil
	})
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	previousExpires := now
	if secrets := changed.Settings.Secrets; len(secrets) > 1 {
		previousExpires = time.UnixMilli(secrets[1].Until)
	}
	return web.Answer(ctx, rotatedWebhookAnswer{web.CredentialOf(webhook.FormatSecret(secret), idempotency), web.Timestamp(previousExpires)})
}
