package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore/webhooks"
)

const (
	secretPrefix = "whsec_"
	secretSize   = 32
	// maxSecrets is how many secrets of a webhook sign at once.
	maxSecrets = 4
)

// NewSecret returns the bytes of a new secret.
func NewSecret() []byte {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// FormatSecret returns a secret as receivers take it: whsec_ and base64.
func FormatSecret(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// SealSecret returns a secret in the form to store: encrypted by the key, which may be nil, and bound to its webhook.
func SealSecret(key *token.KeyEncryptionKey, webhook uuid.UUID, secret []byte) webhooks.Secret {
	return webhooks.Secret{Sealed: key.Seal(sealName(webhook), secret)}
}

func sealName(webhook uuid.UUID) string { return "webhook " + webhook.String() }

// Rotate puts a new secret before the others, and returns them. The others sign until the time given or their own end, whichever is
// earlier. Beyond maxSecrets the oldest one ends at once, but never the one that was current.
func Rotate(secrets []webhooks.Secret, next webhooks.Secret, now, until time.Time) []webhooks.Secret {
	rotated := []webhooks.Secret{next}
	for _, s := range secrets {
		if s.Until == 0 || s.Until > until.UnixMilli() {
			s.Until = until.UnixMilli()
		}
		if s.Until > now.UnixMilli() && len(rotated) < maxSecrets {
			rotated = append(rotated, s)
		}
	}
	return rotated
}

// open returns the secrets that sign a request at a time, the current one first.
func open(key *token.KeyEncryptionKey, w webhooks.Webhook, at time.Time) ([][]byte, error) {
	var secrets [][]byte
	for _, s := range w.Settings.Secrets {
		if s.Until != 0 && s.Until <= at.UnixMilli() {
			continue
		}
		secret, err := key.Open(sealName(w.ID), s.Sealed)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}
