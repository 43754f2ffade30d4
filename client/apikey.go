package client

import (
	"context"
	"net/http"
	"time"
)

// APIKeyParams describe a new API key.
type APIKeyParams struct {
	Name string `json:"name"` // 1 to 200 characters
	// Role is what the key may do. A viewer reads everything that contains no credential. An operator also creates, changes and
	// ends sessions, suspends, resumes, revokes and rolls back. An admin may do everything.
	Role      string        `json:"role"` // viewer, operator or admin
	ExpiresIn time.Duration `json:"-"`    // how long the key lives, to the second, up to 10 years; 0: it never expires

	IdempotencyKey string `json:"-"` // empty: a random one
}

// APIKeyInfo is one of an organization's API keys. The key that came with the organization has the organization's id.
type APIKeyInfo struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Role       string     `json:"role"`             // viewer, operator or admin
	APIKey     Credential `json:"api_key,omitzero"` // only in the response to its creation
	Hint       string     `json:"hint"`             // its last four characters
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`   // nil: never
	LastUsedAt *time.Time `json:"last_used_at"` // to the minute; nil: it has not been used
}

// CreateAPIKey creates an API key of the organization. Only this response holds it. An organization has at most 64; beyond that
// the error is *QuotaExceeded.
func (o *Organization) CreateAPIKey(ctx context.Context, p APIKeyParams) (APIKeyInfo, error) {
	body := struct {
		APIKeyParams
		ExpiresIn int64 `json:"expires_in_seconds,omitzero"`
	}{p, seconds(p.ExpiresIn)}
	return decoded[APIKeyInfo](ctx, o.caller, o.caller.client.keyed(apiKeysPath, p.IdempotencyKey, body))
}

// APIKeys lists the organization's API keys, newest first, without their texts.
func (o *Organization) APIKeys(ctx context.Context) ([]APIKeyInfo, error) {
	return decoded[[]APIKeyInfo](ctx, o.caller, call{method: http.MethodGet, path: apiKeysPath})
}

// RotateAPIKey replaces one of the organization's API keys. Its id, name, role and expiry stay. An Organization that uses this key
// continues to use it, and it stays valid for the grace time.
func (o *Organization) RotateAPIKey(ctx context.Context, id string, p RotateKeyParams) (RotatedKey, error) {
	return o.caller.rotateKey(ctx, apiKeyPath(id)+"/rotate", p)
}

// DeleteAPIKey ends an API key at once. The last admin key that never expires stays: [ErrLastAdminKey].
func (o *Organization) DeleteAPIKey(ctx context.Context, id string) error {
	return o.caller.remove(ctx, apiKeyPath(id))
}

func (c *caller) rotateKey(ctx context.Context, path string, p RotateKeyParams) (RotatedKey, error) {
	return decoded[RotatedKey](ctx, c, c.client.keyed(path, p.IdempotencyKey, graceBody{secondsOrNil(p.Grace)}))
}

// graceBody is the body of a rotation.
type graceBody struct {
	Grace *int64 `json:"grace_seconds,omitzero"`
}

// remove deletes an object. If the response is lost, the next attempt finds nothing, which is a success.
func (c *caller) remove(ctx context.Context, path string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: path, semantics: idempotent, empty: true, gone: true}, nil)
}
