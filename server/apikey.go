package server

import (
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
)

func (s *Server) apiKeyRoutes(r *routes) {
	r.post("/v1/api-keys", redisstore.Admin, s.createAPIKey)
	r.get("/v1/api-keys", redisstore.Viewer, s.listAPIKeys)
	r.post("/v1/api-keys/{id}/rotate", redisstore.Admin, s.rotateAPIKeyOf)
	r.delete("/v1/api-keys/{id}", redisstore.Admin, s.deleteAPIKey)
}

const (
	maxKeyLifetime = 10 * 365 * 24 * 60 * 60 // seconds
	// mostKeyBytes is about how much the list of an organization's keys may have.
	mostKeyBytes = 64 * 1500
	// firstKeyName is the name of the key that came with the organization.
	firstKeyName = "first key"
)

type createAPIKeyRequest struct {
	Name    optional[string] `json:"name"`
	Role    optional[string] `json:"role"`
	Expires optional[int64]  `json:"expires_in_seconds"`
}

func (r *createAPIKeyRequest) newKey() (redisstore.NewAPIKey, error) {
	var v validation
	v.name(r.Name)
	role, known := redisstore.ParseRole(r.Role.value)
	switch {
	case !r.Role.given:
		v.add("role", "is required")
	case !known:
		v.add("role", "must be viewer, operator or admin")
	}
	if r.Expires.given {
		v.within("expires_in_seconds", r.Expires.value, 1, maxKeyLifetime)
	}
	return redisstore.NewAPIKey{Name: r.Name.value, Role: role, Lifetime: time.Duration(r.Expires.value) * time.Second}, v.err()
}

// apiKeyAnswer is one of an organization's API keys.
type apiKeyAnswer struct {
	ID       uuid.UUID       `json:"id"`
	Name     string          `json:"name"`
	Role     redisstore.Role `json:"role"`
	APIKey   string          `json:"api_key,omitzero"` // in the response to its creation only
	Hint     string          `json:"hint"`
	Created  timestamp       `json:"created_at"`
	Expires  *timestamp      `json:"expires_at"`
	LastUsed *timestamp      `json:"last_used_at"`
}

func apiKeyOf(k redisstore.APIKeyRecord) apiKeyAnswer {
	a := apiKeyAnswer{
		ID: k.ID, Name: k.Name, Role: k.Role, Hint: k.Hint, Created: timestamp(k.Created), Expires: timeShown(k.Expires), LastUsed: timeShown(k.LastUsed),
	}
	if k.Name == "" {
		a.Name = firstKeyName
	}
	return a
}

// timeShown returns nil for the zero time.
func timeShown(t time.Time) *timestamp {
	if t.IsZero() {
		return nil
	}
	shown := timestamp(t)
	return &shown
}

// createAPIKey creates another API key of the organization.
func (s *Server) createAPIKey(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	var request createAPIKeyRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.newKey()
	if err != nil {
		return err
	}
	apiKey := token.NewAPIKey(key.Organization)
	if wanted.Idempotency, err = sealedIdempotency(ctx, "create key", uuid.Nil, apiKey); err != nil {
		return err
	}
	record, err := s.store.CreateAPIKey(requestContext(ctx), key, newKey(key.Organization, apiKey), wanted)
	s.reportReplay(ctx, wanted.Idempotency)
	if err != nil {
		return err
	}
	apiKey = credentialOf(apiKey, wanted.Idempotency)
	record.Hint = token.Hint(apiKey)
	created := apiKeyOf(record)
	created.APIKey = apiKey
	keepFromCaches(ctx)
	return answerCreated(ctx, "/v1/api-keys/"+record.ID.String(), created)
}

// listAPIKeys lists all API keys of the organization.
func (s *Server) listAPIKeys(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	if err := s.reserveAnswer(ctx, mostKeyBytes); err != nil {
		return err
	}
	records, err := s.store.APIKeys(requestContext(ctx), key)
	if err != nil {
		return err
	}
	answers := make([]apiKeyAnswer, len(records))
	for i, record := range records {
		answers[i] = apiKeyOf(record)
	}
	return answer(ctx, answers)
}

type rotatedKeyOfAnswer struct {
	ID uuid.UUID `json:"id"`
	rotatedKeyAnswer
}

// rotateAPIKeyOf replaces one of the organization's API keys.
func (s *Server) rotateAPIKeyOf(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	grace, err := decodeGrace(ctx, defaultKeyGrace)
	if err != nil {
		return err
	}
	apiKey := token.NewAPIKey(key.Organization)
	idempotency, err := sealedIdempotency(ctx, "rotate key of", id, apiKey)
	if err != nil {
		return err
	}
	ends, err := s.store.RotateAPIKeyOf(requestContext(ctx), key, id, newKey(key.Organization, apiKey), grace, idempotency)
	s.reportReplay(ctx, idempotency)
	if err != nil {
		return err
	}
	keepFromCaches(ctx)
	return answer(ctx, rotatedKeyOfAnswer{id, rotatedKeyAnswer{credentialOf(apiKey, idempotency), timestamp(ends)}})
}

// deleteAPIKey ends one of the organization's API keys at once.
func (s *Server) deleteAPIKey(ctx *fasthttp.RequestCtx) error {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return err
	}
	if err := decode(ctx, &nothing{}); err != nil {
		return err
	}
	if err := s.store.DeleteAPIKey(requestContext(ctx), key, id); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

type rotatedKeyAnswer struct {
	APIKey          string    `json:"api_key"`
	PreviousExpires timestamp `json:"previous_expires_at"`
}

func (s *Server) rotateAPIKey(ctx *fasthttp.RequestCtx) error {
	key, err := ownOrganization(ctx)
	if err != nil {
		return err
	}
	grace, err := decodeGrace(ctx, defaultKeyGrace)
	if err != nil {
		return err
	}
	apiKey := token.NewAPIKey(key.Organization)
	idempotency, err := sealedIdempotency(ctx, "rotate key", key.Organization, apiKey)
	if err != nil {
		return err
	}
	previousExpires, err := s.store.RotateAPIKey(requestContext(ctx), key, newKey(key.Organization, apiKey), grace, idempotency)
	s.reportReplay(ctx, idempotency)
	if err != nil {
		return err
	}
	keepFromCaches(ctx)
	return answer(ctx, rotatedKeyAnswer{credentialOf(apiKey, idempotency), timestamp(previousExpires)})
}
