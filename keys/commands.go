package keys

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

// Commands are `remit keys …`. All except generate work on the keys stored in Redis, whether instances are running or not.
type Commands struct {
	Generate generate `cmd:"" help:"Print a new key for --signing-key, --token-key or --key-encryption-key."`
	List     list     `cmd:"" help:"List the keys stored in Redis."`
	Rotate   rotate   `cmd:"" help:"Add a key: every instance publishes it now and signs with it later."`
	Retire   retire   `cmd:"" help:"Stop accepting a key at once, or withdraw one that does not sign yet."`
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

type generate struct {
	Kind      string          `arg:"" enum:"signing,token,encryption" help:"signing, token or encryption."`
	Algorithm token.Algorithm `enum:"EdDSA,ES256,RS256" default:"EdDSA" help:"Algorithm of a signing key: EdDSA, ES256 or RS256."`
}

// Run prints a key in the form that its flag reads.
func (c *generate) Run() error {
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

type list struct{ storeFlags }

// Run prints one line per stored key.
func (c *list) Run() error {
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

// timeText returns "-" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

type retire struct {
	storeFlags
	Kind redisstore.KeyKind `arg:"" enum:"signing,refresh" help:"signing or refresh."`
	Key  string             `arg:"" help:"The key's name, as keys list shows it."`
}

// Run ends the key.
func (c *retire) Run() error {
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
