package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/term"
	"remit/cli"
	"remit/redisstore"
	"remit/token"
)

// organizationCommands are the operator's: they work on Redis, beside the instances, and need no API key.
type organizationCommands struct {
	List              listOrganizations   `cmd:"" help:"List all organizations, the oldest first."`
	Show              showOrganization    `cmd:"" help:"Show an organization and how much it holds."`
	Suspend           suspendOrganization `cmd:"" help:"Refuse an organization's API keys and its agents' tokens, until it resumes."`
	Resume            resumeOrganization  `cmd:"" help:"End the suspension of an organization."`
	Delete            deleteOrganization  `cmd:"" help:"Remove an organization and all that it holds, for good."`
	Quota             organizationQuota   `cmd:"" help:"Show an organization's quotas and what it uses of them, or set some."`
	NewKey            newOrganizationKey  `cmd:"" help:"Print a new API key for an organization; its other keys end."`
	NewBootstrapToken newBootstrapToken   `cmd:"" help:"Print a new bootstrap token, in place of the one that the service made."`
}

// operatorStore is what the commands need to reach Redis.
type operatorStore struct {
	RedisURL   redisURL              `required:"" help:"The Redis that the instances use."`
	Durability redisstore.Durability `default:"local" enum:"local,replicated" help:"As for the instances: when a write is acknowledged."`
}

// work runs an operation on the store until it is done or interrupted.
func (o operatorStore) work(operation func(context.Context, *redisstore.Store) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	goredis.SetLogger(redisLog{slog.New(slog.DiscardHandler)}) // errors are returned too
	store, err := redisstore.Open(redisstore.Config{URL: string(o.RedisURL), Durability: o.Durability})
	if err != nil {
		return err
	}
	defer store.Close()
	return operation(ctx, store)
}

// oneOrganization is the flags of a command on one organization.
type oneOrganization struct {
	operatorStore
	ID string `arg:"" help:"The organization's id."`
}

// workOn is work on the organization. Its error names the organization.
func (o oneOrganization) workOn(operation func(context.Context, *redisstore.Store, uuid.UUID) error) error {
	id, err := uuid.Parse(o.ID)
	if err != nil || len(o.ID) != len(id.String()) {
		return fmt.Errorf("%q is no id of an organization: a UUID", o.ID)
	}
	return o.work(func(ctx context.Context, store *redisstore.Store) error {
		if err := operation(ctx, store, id); err != nil {
			return fmt.Errorf("organization %s: %w", id, err)
		}
		return nil
	})
}

// organizationDocument is an organization in JSON.
type organizationDocument struct {
	ID             uuid.UUID `json:"id"`
	Name           string    `json:"name"`
	Created        string    `json:"created_at"`
	Status         string    `json:"status"`
	Suspended      string    `json:"suspended_at,omitempty"`
	Agents         int64     `json:"agents"`
	OpenSessions   int64     `json:"open_sessions"`
	ClosedSessions int64     `json:"closed_sessions"`
	Transactions   int64     `json:"transactions"`
}

func documentOf(o redisstore.OrganizationUse) organizationDocument {
	d := organizationDocument{
		ID: o.ID, Name: o.Name, Created: shortTime(o.Created), Status: "active", Agents: o.Agents,
		OpenSessions: o.OpenSessions, ClosedSessions: o.ClosedSessions, Transactions: o.Transactions,
	}
	if o.Suspension != nil {
		d.Status, d.Suspended = "suspended", shortTime(o.Suspension.Since)
		if o.Suspension.Deleting {
			d.Status = "deleting"
		}
	}
	return d
}

type listOrganizations struct {
	operatorStore
	cli.Output
}

// Run prints a line for each organization.
func (c *listOrganizations) Run() error {
	return c.work(func(ctx context.Context, store *redisstore.Store) error {
		all, err := store.Organizations(ctx)
		if err != nil {
			return err
		}
		documents, rows := make([]organizationDocument, len(all)), make([][]string, len(all))
		for i, o := range all {
			d := documentOf(o)
			documents[i] = d
			rows[i] = []string{d.ID.String(), d.Name, d.Status, d.Created, counted(d.Agents), counted(d.OpenSessions), counted(d.Transactions)}
		}
		return c.Output.List(documents, []string{"ID", "NAME", "STATUS", "CREATED", "AGENTS", "OPEN SESSIONS", "TRANSACTIONS"}, rows)
	})
}

func counted(n int64) string { return strconv.FormatInt(n, 10) }

type showOrganization struct {
	oneOrganization
	cli.Output
}

// Run prints the organization.
func (c *showOrganization) Run() error {
	return c.workOn(func(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
		found, err := store.OrganizationUse(ctx, id)
		if err != nil {
			return err
		}
		d := documentOf(found)
		return c.Output.Show(d, [2]string{"ID", d.ID.String()}, [2]string{"NAME", d.Name}, [2]string{"STATUS", d.Status},
			[2]string{"SUSPENDED", d.Suspended}, [2]string{"CREATED", d.Created}, [2]string{"AGENTS", counted(d.Agents)},
			[2]string{"OPEN SESSIONS", counted(d.OpenSessions)}, [2]string{"CLOSED SESSIONS", counted(d.ClosedSessions)},
			[2]string{"TRANSACTIONS", counted(d.Transactions)})
	})
}

type suspendOrganization struct{ oneOrganization }

// Run suspends the organization.
func (c *suspendOrganization) Run() error {
	return c.workOn(func(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
		suspension, err := store.Suspend(ctx, id)
		if err != nil {
			return err
		}
		fmt.Printf("%s is suspended since %s; within %s every instance refuses it\n", id, shortTime(suspension.Since), keyPoll)
		return nil
	})
}

type resumeOrganization struct{ oneOrganization }

// Run ends the suspension.
func (c *resumeOrganization) Run() error {
	return c.workOn(func(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
		err := store.Resume(ctx, id)
		if errors.Is(err, redisstore.ErrBeingDeleted) {
			return fmt.Errorf("%w; repeat the deletion to finish it", err)
		}
		if err == nil {
			fmt.Printf("%s is active; within %s every instance admits it\n", id, keyPoll)
		}
		return err
	})
}

type deleteOrganization struct {
	oneOrganization
	Yes bool `env:"-" help:"Do not ask for the organization's name."`
}

// Run removes the organization, and says on standard error how far it is.
func (c *deleteOrganization) Run() error {
	return c.workOn(func(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
		if err := c.confirm(ctx, store, id); err != nil {
			return err
		}
		var last redisstore.DeletionProgress
		told := time.Now()
		err := store.DeleteOrganization(ctx, id, func(p redisstore.DeletionProgress) {
			if last = p; time.Since(told) >= time.Second {
				told = time.Now()
				fmt.Fprintf(os.Stderr, "remit: pass %d: %d keys looked at, %d removed\n", p.Pass, p.Walked, p.Removed)
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

// confirm lets somebody at a terminal type the organization's name; elsewhere --yes is needed.
func (c *deleteOrganization) confirm(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
	if c.Yes {
		return nil
	}
	found, err := store.OrganizationUse(ctx, id)
	if err != nil {
		return err
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New("deleting it needs --yes where nobody can be asked; nothing was changed")
	}
	fmt.Fprintf(os.Stderr, "This removes %s with %d agents for good. Type its name to go on: ", strconv.Quote(found.Name), found.Agents)
	typed, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if strings.TrimRight(typed, "\r\n") != found.Name {
		return errors.New("that is not its name; nothing was changed")
	}
	return nil
}

type newOrganizationKey struct {
	oneOrganization
	cli.Output
	Grace time.Duration `default:"0s" env:"-" help:"How long the current key stays valid, up to 168h."`
}

// Validate is called by the flag parser.
func (c *newOrganizationKey) Validate() error {
	if c.Grace < 0 || c.Grace > 7*24*time.Hour {
		return errors.New("--grace must be from 0 to 168h")
	}
	return nil
}

// maxRepeats is how often a key is sent again whose answer was lost: nobody else knows it, and it may be in force.
const maxRepeats = 3

// Run prints the new key, once.
func (c *newOrganizationKey) Run() error {
	return c.workOn(func(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
		key := token.NewAPIKey(id)
		ends, err := store.ReplaceAPIKey(ctx, id, token.Hash(key), c.Grace)
		for again := 0; errors.Is(err, redisstore.ErrOutcomeUnknown) && again < maxRepeats; again++ {
			ends, err = store.ReplaceAPIKey(ctx, id, token.Hash(key), c.Grace)
		}
		if err != nil {
			return err
		}
		cli.ShownOnce("API key")
		return c.Output.Show(struct {
			APIKey          string `json:"api_key"`
			PreviousExpires string `json:"previous_expires_at"`
		}{key, shortTime(ends)}, [2]string{"API KEY", key}, [2]string{"PREVIOUS ENDS", shortTime(ends)})
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
