package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"
	"remit/internal/cli"
	"remit/redisstore"
)

type deleteOrganization struct {
	oneOrganization
	Yes bool `env:"-" help:"Skip the confirmation, which asks for the organization's name."`
}

// Run deletes the organization, and reports progress on standard error every second.
func (c *deleteOrganization) Run() error {
	return c.workOn(func(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
		if err := c.confirm(ctx, store, id); err != nil {
			return err
		}
		var last redisstore.DeletionProgress
		reported := time.Now()
		err := store.DeleteOrganization(ctx, id, func(p redisstore.DeletionProgress) {
			if last = p; time.Since(reported) >= time.Second {
				reported = time.Now()
				fmt.Fprintf(os.Stderr, "remit: pass %d: %d keys scanned, %d removed\n", p.Pass, p.Walked, p.Removed)
			}
		})
		if ctx.Err() != nil {
			return errors.New("interrupted; it stays suspended. Repeat the deletion to finish it")
		}
		if err == nil {
			fmt.Printf("%s is deleted: %d keys removed\n", id, last.Removed)
		}
		return err
	})
}

// confirm asks for the organization's name at a terminal. Without a terminal it requires --yes.
func (c *deleteOrganization) confirm(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
	if c.Yes {
		return nil
	}
	found, err := store.OrganizationUse(ctx, id)
	if err != nil {
		return err
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New("deleting it without a terminal needs --yes; nothing was changed")
	}
	return cli.AskForName(fmt.Sprintf("This permanently deletes %q with %d agents.", found.Name, found.Agents), found.Name)
}
