package keys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"remit/internal/token"
	"remit/redisstore"
)

// Commands are `remit keys …`. All except generate work on the keys stored in Redis, whether instances are running or not.
type Commands struct {
	Generate generateKey `cmd:"" help:"Print a new key for --signing-key, --token-key or --key-encryption-key."`
	List     listKeys    `cmd:"" help:"List the keys stored in Redis."`
	Rotate   rotateKey   `cmd:"" help:"Add a key: every instance publishes it now and signs with it later."`
	Retire   retireKey   `cmd:"" help:"Stop accepting a key at once, or withdraw one that does not sign yet."`
}

type generateKey struct {
	Kind      string          `arg:"" enum:"signing,token,encryption" help:"signing (of access tokens), token (of refresh tokens) or encryption (of keys in Redis)."`
	Algorithm token.Algorithm `enum:"EdDSA,ES256,RS256" default:"EdDSA" help:"Algorithm of a signing key: EdDSA, ES256 or RS256."`
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

type listKeys struct{ storeFlags }

// Run prints one line per stored key.
func (c *listKeys) Run() error {
	store, err := c.open()
	if err != nil {
		return err
	}
	defer store.Close()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tKEY\tSTATE\tCREATED\tSIGNS FROM\tENDS")
	for _, kind := range []redisstore.KeyKind{redisstore.SigningKeys, redisstore.TokenKeys} {
		records, now, err := store.Keys(context.Background(), kind)
		if err != nil {
			return err
		}
		for i, record := range signerFirst(records, now) {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", kind, record.ID, stateOf(record, i == 0, now),
				timeText(record.Created), timeText(record.SignsFrom), timeText(record.Ends))
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

type retireKey struct {
	storeFlags
	Kind redisstore.KeyKind `arg:"" enum:"signing,token" help:"signing or token."`
	Key  string             `arg:"" help:"The key's name, as keys list shows it."`
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
	fmt.Printf("%s is retired; within %s no instance accepts what it signed\n", sealName(c.Kind, c.Key), PollInterval)
	return nil
}

// storeFlags say which Redis the commands work on.
type storeFlags struct {
	RedisURL         redisstore.URL        `required:"" help:"URL of the Redis that the instances use."`
	Durability       redisstore.Durability `default:"local" enum:"local,replicated" help:"When a write is acknowledged, as for the instances: local or replicated."`
	KeyEncryptionKey string                `help:"File with the key that encrypts the keys stored in Redis." type:"existingfile"`
}

func (f storeFlags) open() (*redisstore.Store, error) {
	return redisstore.Open(redisstore.Config{URL: string(f.RedisURL), Durability: f.Durability})
}

// timeText returns "-" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
