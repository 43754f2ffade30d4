// Package webhooks serves the settings of webhooks, and their deliveries. Package webhook sends them.
package webhooks

import (
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// Handlers serve the operations on webhooks and their deliveries.
type Handlers struct {
	store   *redisstore.Store
	front   *web.Front
	options Options
}

// New returns handlers.
func New(store *redisstore.Store, front *web.Front, options Options) *Handlers {
	return &Handlers{store, front, options}
}

// Options configures an organization's webhooks. The deliveries are package webhook's.
type Options struct {
	// Encryption is the key that their secrets are sealed with. Nil means that they are stored as they are.
	Encryption *token.KeyEncryptionKey
	// AllowPrivate allows plain http.
	AllowPrivate bool
}
