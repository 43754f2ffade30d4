package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"remit/internal/cli"
	"remit/internal/token"
	"remit/redisstore"
)

type newOrganizationKey struct {
	oneOrganization
	cli.Output
	Grace time.Duration `default:"0s" env:"-" help:"How long the current key stays valid (0 to 168h)."`
}

// Validate is called by the flag parser.
func (c *newOrganizationKey) Validate() error {
	if c.Grace < 0 || c.Grace > 7*24*time.Hour {
		return errors.New("--grace must be from 0 to 168h")
	}
	return nil
}

// maxRepeats bounds retries after a lost reply. The new key may already be valid, and only this process knows it.
const maxRepeats = 3

// Run prints the new key, once.
func (c *newOrganizationKey) Run() error {
	return c.workOn(func(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
		key := token.NewAPIKey(id)
		fresh := redisstore.APIKey{Organization: id, Hash: token.Hash(key), Hint: token.Hint(key)}
		ends, err := store.ReplaceAPIKey(ctx, fresh, c.Grace)
		for again := 0; errors.Is(err, redisstore.ErrOutcomeUnknown) && again < maxRepeats; again++ {
			ends, err = store.ReplaceAPIKey(ctx, fresh, c.Grace)
		}
		if err != nil {
			return err
		}
		cli.ShownOnce("API key")
		return c.Show(struct {
			APIKey          string `json:"api_key"`
			PreviousExpires string `json:"previous_expires_at"`
		}{key, timeText(ends)}, []cli.Fact{{Name: "API KEY", Value: key}, {Name: "PREVIOUS ENDS", Value: timeText(ends)}})
	})
}

type newBootstrapToken struct{ operatorStore }

// Run prints the new token, once.
func (c *newBootstrapToken) Run() error {
	return c.work(func(ctx context.Context, store *redisstore.Store) error {
		fresh := token.NewBootstrapToken()
		if err := store.SetBootstrapHash(ctx, token.Hash(fresh)); err != nil {
			return err
		}
		cli.ShownOnce("bootstrap token")
		fmt.Println(fresh)
		return nil
	})
}
