package identity

import (
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) apiKeyRoutes(r *web.Routes) {
	r.Post("/v1/api-keys", redisstore.Admin, access.ByKey(h.createAPIKey))
	r.Get("/v1/api-keys", redisstore.Viewer, access.ByKey(h.listAPIKeys))
	r.Post("/v1/api-keys/{id}/rotate", redisstore.Admin, access.ByKeyAt(h.rotateAPIKeyOf))
	r.Delete("/v1/api-keys/{id}", redisstore.Admin, access.ByKeyAt(h.deleteAPIKey))
}

const (
	maxKeyLifetime = 10 * 365 * 24 * 60 * 60 // seconds
	// mostKeyBytes is about how much the list of an organization's keys may have.
	mostKeyBytes = 64 * 1500
	// firstKeyName is the name of the key that came with the organization.
	firstKeyName = "first key"
)

type createAPIKeyRequest struct {
	Name    web.Optional[string] `json:"name"`
	Role    web.Optional[string] `json:"role"`
	Expires web.Optional[int64]  `json:"expires_in_seconds"`
}

func (r *createAPIKeyRequest) newKey() (redisstore.NewAPIKey, error) {
	var v web.Validation
	v.Name(r.Name)
	role, known := redisstore.ParseRole(r.Role.Value)
	switch {
	case !r.Role.Given:
		v.Add("role", "is required")
	case !known:
		v.Add("role", "must be viewer, operator or admin")
	}
	if r.Expires.Given {
		v.Within("expires_in_seconds", r.Expires.Value, 1, maxKeyLifetime)
	}
	return redisstore.NewAPIKey{Name: r.Name.Value, Role: role, Lifetime: time.Duration(r.Expires.Value) * time.Second}, v.Err()
}

// apiKeyAnswer is one of an organization's API keys.
type apiKeyAnswer struct {
	ID       uuid.UUID       `json:"id"`
	Name     string          `json:"name"`
	Role     redisstore.Role `json:"role"`
	APIKey   string          `json:"api_key,omitzero"` // in the response to its creation only
	Hint     string          `json:"hint"`
	Created  web.Timestamp   `json:"created_at"`
	Expires  *web.Timestamp  `json:"expires_at"`
	LastUsed *web.Timestamp  `json:"last_used_at"`
}

func apiKeyOf(k redisstore.APIKeyRecord) apiKeyAnswer {
	a := apiKeyAnswer{
		ID: k.ID, Name: k.Name, Role: k.Role, Hint: k.Hint, Created: web.Timestamp(k.Created), Expires: timeShown(k.Expires), LastUsed: timeShown(k.LastUsed),
	}
	if k.Name == "" {
		a.Name = firstKeyName
	}
	return a
}

// timeShown returns nil for the zero time.
func timeShown(t time.Time) *web.Timestamp {
	if t.IsZero() {
		return nil
	}
	shown := web.Timestamp(t)
	return &shown
}

// createAPIKey creates another API key of the organization.
func (h *Handlers) createAPIKey(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	wanted, err := web.Decoded(ctx, (*createAPIKeyRequest).newKey)
	if err != nil {
		return err
	}
	apiKey := token.NewAPIKey(key.Organization)
	if wanted.Idempotency, err = web.SealedIdempotency(ctx, "create key", uuid.Nil, apiKey); err != nil {
		return err
	}
	record, err := h.Store.CreateAPIKey(web.RequestContext(ctx), key, access.NewKey(key.Organization, apiKey), wanted)
	if err != nil {
		return err
	}
	apiKey = web.CredentialOf(apiKey, wanted.Idempotency)
	record.Hint = token.Hint(apiKey)
	created := apiKeyOf(record)
	created.APIKey = apiKey
	web.KeepFromCaches(ctx)
	return web.AnswerCreated(ctx, "/v1/api-keys/"+record.ID.String(), created)
}

// listAPIKeys lists all API keys of the organization.
func (h *Handlers) listAPIKeys(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	if err := h.Front.ReserveAnswer(ctx, mostKeyBytes); err != nil {
		return err
	}
	records, err := h.Store.APIKeys(web.RequestContext(ctx), key)
	return web.AnswerEach(ctx, apiKeyOf, records, err)
}

type rotatedKeyOfAnswer struct {
	ID uuid.UUID `json:"id"`
	RotatedKeyAnswer
}

// rotateAPIKeyOf replaces one of the organization's API keys.
func (h *Handlers) rotateAPIKeyOf(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	grace, err := web.DecodeGrace(ctx, web.DefaultKeyGrace)
	if err != nil {
		return err
	}
	apiKey := token.NewAPIKey(key.Organization)
	idempotency, err := web.SealedIdempotency(ctx, "rotate key of", id, apiKey)
	if err != nil {
		return err
	}
	ends, err := h.Store.RotateAPIKeyOf(web.RequestContext(ctx), key, id, access.NewKey(key.Organization, apiKey), grace, idempotency)
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	return web.Answer(ctx, rotatedKeyOfAnswer{id, RotatedKeyAnswer{web.CredentialOf(apiKey, idempotency), web.Timestamp(ends)}})
}

// deleteAPIKey ends one of the organization's API keys at once.
func (h *Handlers) deleteAPIKey(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	if err := web.Decode(ctx, &web.Nothing{}); err != nil {
		return err
	}
	return web.AnswerNothing(ctx, h.Store.DeleteAPIKey(web.RequestContext(ctx), key, id))
}

// RotatedKeyAnswer is the response to a rotation of an API key.
type RotatedKeyAnswer struct {
	APIKey          string        `json:"api_key"`
	PreviousExpires web.Timestamp `json:"previous_expires_at"`
}

func (h *Handlers) rotateAPIKey(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	grace, err := web.DecodeGrace(ctx, web.DefaultKeyGrace)
	if err != nil {
		return err
	}
	apiKey := token.NewAPIKey(key.Organization)
	idempotency, err := web.SealedIdempotency(ctx, "rotate key", key.Organization, apiKey)
	if err != nil {
		return err
	}
	previousExpires, err := h.Store.RotateAPIKey(web.RequestContext(ctx), key, access.NewKey(key.Organization, apiKey), grace, idempotency)
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	return web.Answer(ctx, RotatedKeyAnswer{web.CredentialOf(apiKey, idempotency), web.Timestamp(previousExpires)})
}
