package server

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/outbound"
	"remit/internal/webhook"
	"remit/redisstore"
)

func (s *Server) webhookRoutes(r *routes) {
	r.post("/v1/webhooks", redisstore.Admin, s.createWebhook)
	r.get("/v1/webhooks", redisstore.Viewer, s.listWebhooks)
	r.get("/v1/webhooks/{id}", redisstore.Viewer, s.getWebhook)
	r.patch("/v1/webhooks/{id}", redisstore.Admin, s.changeWebhook)
	r.delete("/v1/webhooks/{id}", redisstore.Admin, s.deleteWebhook)
	r.post("/v1/webhooks/{id}/rotate", redisstore.Admin, s.rotateWebhook)
	r.post("/v1/webhooks/{id}/test", redisstore.Admin, s.testWebhook)
	r.get("/v1/webhooks/{id}/deliveries", redisstore.Viewer, s.listDeliveries)
	r.post("/v1/webhooks/{id}/deliveries/{delivery_id}/retry", redisstore.Admin, s.retryDelivery)
}

const (
	maxWebhookDescription = 500   // characters
	defaultWebhookGrace   = 86400 // seconds that a replaced secret still signs
)

// webhookRequest creates or changes a webhook.
type webhookRequest struct {
	URL         optional[string]   `json:"url"`
	Types       optional[[]string] `json:"types"`
	Description optional[string]   `json:"description"`
}

func (r *webhookRequest) check(v *validation, allowPlain bool) {
	if r.URL.given {
		if err := outbound.CheckURL(r.URL.value, allowPlain); err != nil {
			v.add("url", err.Error())
		}
	}
	checkEventTypes(v, "types", r.Types.value)
	v.require(utf8.RuneCountInString(r.Description.value) <= maxWebhookDescription, "description", "must have at most 500 characters")
}

// apply writes what is given into the settings.
func (r *webhookRequest) apply(settings *redisstore.WebhookSettings) {
	settings.URL = r.URL.or(settings.URL)
	settings.Types = r.Types.or(settings.Types)
	settings.Description = r.Description.or(settings.Description)
}

type webhookAnswer struct {
	ID          uuid.UUID `json:"id"`
	URL         string    `json:"url"`
	Types       []string  `json:"types"` // [] for all
	Description string    `json:"description"`
	Secret      string    `json:"secret,omitzero"` // in the response to its creation only
	Missed      int64     `json:"missed_events"`
	Confirmed   timestamp `json:"confirmed_at,omitzero"` // when its URL's receiver first accepted a test; absent before
	Failing     timestamp `json:"failing_since,omitzero"`
	Created     timestamp `json:"created_at"`
}

// webhookOf is a webhook as the key that read it may see it: the URL of a chat service is a credential.
func webhookOf(w redisstore.Webhook) webhookAnswer {
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
		Confirmed: timestamp(w.Confirmed()), Failing: timestamp(w.Progress.Failing), Created: timestamp(w.Created()),
	}
}

// createWebhook creates a webhook. It gets a test at once, and the events from now on when it is confirmed.
func (s *Server) createWebhook(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	var request webhookRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	var v validation
	v.require(request.URL.given, "url", "is required")
	request.check(&v, s.webhooks.AllowPrivate)
	if err := v.err(); err != nil {
		return err
	}
	created, secret, err := s.makeWebhook(ctx, key, request)
	if err != nil {
		return err
	}
	keepFromCaches(ctx)
	shown := webhookOf(created)
	shown.Secret = secret
	return answerCreated(ctx, "/v1/webhooks/"+created.ID.String(), shown)
}

// makeWebhook stores a webhook with a secret of its own, which it returns.
func (s *Server) makeWebhook(ctx *fasthttp.RequestCtx, key redisstore.APIKey, request webhookRequest) (redisstore.Webhook, string, error) {
	id, secret := redisstore.NewID(key.Organization), webhook.NewSecret()
	idempotency, err := sealedIdempotency(ctx, "create webhook", key.Organization, webhook.FormatSecret(secret))
	if err != nil {
		return redisstore.Webhook{}, "", err
	}
	settings := redisstore.WebhookSettings{Secrets: []redisstore.WebhookSecret{webhook.SealSecret(s.webhooks.Encryption, id, secret)}}
	request.apply(&settings)
	created, err := s.store.CreateWebhook(requestContext(ctx), key, id, settings, idempotency)
	s.reportReplay(ctx, idempotency)
	return created, credentialOf(webhook.FormatSecret(secret), idempotency), err
}

func (s *Server) listWebhooks(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	all, err := s.store.Webhooks(requestContext(ctx), key)
	if err != nil {
		return err
	}
	slices.Reverse(all) // newest first
	answers := make([]webhookAnswer, len(all))
	for i, w := range all {
		answers[i] = webhookOf(w)
	}
	return answer(ctx, answers)
}

func (s *Server) getWebhook(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	found, err := s.store.Webhook(requestContext(ctx), key, id)
	if err != nil {
		return err
	}
	return answer(ctx, webhookOf(found))
}

func (s *Server) changeWebhook(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	var request webhookRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	var v validation
	v.require(request.URL.given || request.Types.given || request.Description.given, "", "name at least one of url, types and description")
	request.check(&v, s.webhooks.AllowPrivate)
	if err := v.err(); err != nil {
		return err
	}
	changed, err := s.store.ChangeWebhook(requestContext(ctx), key, id, nil, func(settings *redisstore.WebhookSettings) error {
		request.apply(settings)
		return nil
	})
	if err != nil {
		return err
	}
	return answer(ctx, webhookOf(changed))
}

func (s *Server) deleteWebhook(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	if err := s.store.DeleteWebhook(requestContext(ctx), key, id); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

type rotatedWebhookAnswer struct {
	Secret          string    `json:"secret"`
	PreviousExpires timestamp `json:"previous_expires_at"`
}

// rotateWebhook gives a webhook a new secret. Until the grace time ends, requests carry signatures by those before it too.
func (s *Server) rotateWebhook(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	grace, err := decodeGrace(ctx, defaultWebhookGrace)
	if err != nil {
		return err
	}
	secret := webhook.NewSecret()
	idempotency, err := sealedIdempotency(ctx, "rotate webhook", id, webhook.FormatSecret(secret))
	if err != nil {
		return err
	}
	now := time.Now()
	changed, err := s.store.ChangeWebhook(requestContext(ctx), key, id, idempotency, func(settings *redisstore.WebhookSettings) error {
		next := webhook.SealSecret(s.webhooks.Encryption, id, secret)
		settings.Secrets = webhook.Rotate(settings.Secrets, next, now, now.Add(grace))
		return nil
	})
	s.reportReplay(ctx, idempotency)
	if err != nil {
		return err
	}
	keepFromCaches(ctx)
	previousExpires := now
	if secrets := changed.Settings.Secrets; len(secrets) > 1 {
		previousExpires = time.UnixMilli(secrets[1].Until)
	}
	return answer(ctx, rotatedWebhookAnswer{credentialOf(webhook.FormatSecret(secret), idempotency), timestamp(previousExpires)})
}
