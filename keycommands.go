package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"remit/redisstore"
	"remit/token"
)

// keyCommands work on the keys that are kept in Redis, while instances run or not.
type keyCommands struct {
	Generate generateKey `cmd:"" help:"Print a new key, for --signing-key, --token-key or --key-encryption-key."`
	List     listKeys    `cmd:"" help:"List the keys that are kept in Redis."`
	Rotate   rotateKeys  `cmd:"" help:"Add a key that every instance publishes now and signs with later."`
	Retire   retireKey   `cmd:"" help:"End a key at once, or withdraw one that does not sign yet."`
}

// keyStore is what the commands need to reach the keys.
type keyStore struct {
	RedisURL         redisURL              `required:"" help:"The Redis that the instances use."`
	Durability       redisstore.Durability `default:"local" enum:"local,replicated" help:"As for the instances: when a write is acknowledged."`
	KeyEncryptionKey string                `help:"File with the key that the kept keys are encrypted with." type:"existingfile"`
}

func (k keyStore) open() (*redisstore.Store, error) {
	return redisstore.Open(redisstore.Config{URL: string(k.RedisURL), Durability: k.Durability})
}

type generateKey struct {
	Kind      string          `arg:"" enum:"signing,token,encryption" help:"signing, token or encryption."`
	Algorithm token.Algorithm `enum:"EdDSA,ES256,RS256" default:"EdDSA" help:"Of a signing key: EdDSA, ES256 or RS256."`
}

// Run prints a key in the form that its flag reads.
func (c *generateKey) Run() error {
	material := token.GenerateRefreshKey()
	if c.Kind == "signing" {
		var err error
		if material, err = token.GenerateSigningKey(c.Algorithm); err != nil {
			return err
		}
	}
	_, err := os.Stdout.Write(material)
	return err
}

type listKeys struct{ keyStore }

// Run prints a line for each key that is kept.
func (c *listKeys) Run() error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tKEY\tSTATE\tCREATED\tSIGNS FROM\tENDS")
	for _, kind := range []redisstore.KeyKind{redisstore.SigningKeys, redisstore.RefreshKeys} {
		records, now, err := store.Keys(context.Background(), kind)
		if err != nil {
			return err
		}
		for i, record := range signerFirst(records, now) {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", kind, record.ID, stateOf(record, i == 0, now),
				shortTime(record.Created), shortTime(record.SignsFrom), shortTime(record.Ends))
		}
	}
	return table.Flush()
}

func stateOf(record redisstore.KeyRecord, first bool, now time.Time) string {
	switch {
	case record.SignsFrom.After(now):
		return "published"
	case first:
		return "signs"
	}
	return "verifies"
}

func shortTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

type rotateKeys struct {
	keyStore
	Kind       redisstore.KeyKind `arg:"" enum:"signing,refresh" help:"signing (access tokens) or refresh (refresh tokens)."`
	Algorithm  token.Algorithm    `enum:"EdDSA,ES256,RS256" default:"EdDSA" help:"Of a signing key: EdDSA, ES256 or RS256."`
	PublishFor time.Duration      `default:"10m" help:"How long the key is published before it signs: longer than others cache the JWKS."`
}

// clockSlack is how much longer than its tokens a key verifies, for instances that switch late and clocks that differ.
const clockSlack = 5 * time.Minute

// Validate is called by the flag parser.
func (c *rotateKeys) Validate() error {
	if c.PublishFor < 2*keyPoll {
		return fmt.Errorf("--publish-for must be at least %s, for every instance to read the key first", 2*keyPoll)
	}
	return nil
}

// Run adds the key and says from when it signs.
func (c *rotateKeys) Run() error {
	kek, err := keyFlags{KeyEncryptionKey: c.KeyEncryptionKey}.encryptionKey()
	if err != nil {
		return err
	}
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	if err := canOpenKept(store, kek, c.Kind); err != nil {
		return err
	}
	fresh, outlive := newSigningKey(c.Algorithm), token.AccessLifetime+clockSlack
	if c.Kind == redisstore.RefreshKeys {
		fresh, outlive = newRefreshKey, token.RefreshLifetime+clockSlack
	}
	key, err := fresh()
	if err != nil {
		return err
	}
	kept := kek.Seal(keptName(c.Kind, key.id), key.material)
	signsFrom, err := store.RotateKey(context.Background(), c.Kind, key.id, kept, c.PublishFor, outlive)
	if err != nil {
		return err
	}
	fmt.Printf("%s signs from %s; those before it verify until %s\n",
		keptName(c.Kind, key.id), shortTime(signsFrom), shortTime(signsFrom.Add(outlive)))
	return nil
}

// canOpenKept returns an error when the keys that are kept are not encrypted as the new one would be: no instance could
// read both.
func canOpenKept(store *redisstore.Store, kek *token.KeyEncryptionKey, kind redisstore.KeyKind) error {
	records, _, err := store.Keys(context.Background(), kind)
	for _, record := range records {
		if _, openErr := kek.Open(keptName(kind, record.ID), record.Material); openErr != nil {
			return openErr
		}
	}
	return err
}

type retireKey struct {
	keyStore
	Kind redisstore.KeyKind `arg:"" enum:"signing,refresh" help:"signing or refresh."`
	Key  string             `arg:"" help:"As keys list shows it."`
}

// Run ends the key.
func (c *retireKey) Run() error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	err = store.RetireKey(context.Background(), c.Kind, c.Key)
	if errors.Is(err, redisstore.ErrKeyInUse) {
		return fmt.Errorf("%w; rotate first", err)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s is retired; within %s no instance accepts what it signed\n", keptName(c.Kind, c.Key), keyPoll)
	return nil
}
