package keys

import (
	"context"
	"fmt"
	"time"

	"remit/internal/token"
	"remit/redisstore"
)

type rotateKey struct {
	storeFlags
	Kind       redisstore.KeyKind `arg:"" enum:"signing,token" help:"signing (of access tokens) or token (of refresh tokens and session keys)."`
	Algorithm  token.Algorithm    `enum:"EdDSA,ES256,RS256" default:"EdDSA" help:"Algorithm of a signing key: EdDSA, ES256 or RS256."`
	PublishFor time.Duration      `default:"10m" help:"How long the key is published before it signs: longer than verifiers cache the JWKS."`
}

// clockSlack is how much longer than its tokens a key verifies, for instances that switch late and clocks that differ.
const clockSlack = 5 * time.Minute

// mostSessionLifetime is the longest lifetime that a session is given at once. Its session keys are derived by the token key, and outlive
// refresh tokens.
const mostSessionLifetime = 30 * 24 * time.Hour

// Validate is called by the flag parser.
func (c *rotateKey) Validate() error {
	if c.PublishFor < 2*PollInterval {
		return fmt.Errorf("--publish-for must be at least %s, so that every instance reads the key first", 2*PollInterval)
	}
	return nil
}

// Run adds the key and prints when it starts to sign.
func (c *rotateKey) Run() error {
	kek, err := readEncryptionKey(c.KeyEncryptionKey)
	if err != nil {
		return err
	}
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	if err := checkEncryption(store, kek, c.Kind); err != nil {
		return err
	}
	generate, outlive := newSigningKey(c.Algorithm), token.AccessLifetime+clockSlack
	if c.Kind == redisstore.TokenKeys {
		generate, outlive = newRefreshKey, mostSessionLifetime+clockSlack
	}
	key, err := generate()
	if err != nil {
		return err
	}
	signsFrom, err := store.RotateKey(context.Background(), c.Kind, key.id, key.sealed(kek, c.Kind), c.PublishFor, outlive)
	if err != nil {
		return err
	}
	fmt.Printf("%s signs from %s; the keys before it verify until %s\n",
		sealName(c.Kind, key.id), timeText(signsFrom), timeText(signsFrom.Add(outlive)))
	return nil
}

// checkEncryption returns an error unless the stored keys are encrypted as the new one would be: no instance could read
// both.
func checkEncryption(store *redisstore.Store, kek *token.KeyEncryptionKey, kind redisstore.KeyKind) error {
	records, _, err := store.Keys(context.Background(), kind)
	for _, record := range records {
		if _, openErr := kek.Open(sealName(kind, record.ID), record.Material); openErr != nil {
			return openErr
		}
	}
	return err
}
