// Package operator is the operator's commands on organizations. They work on Redis itself and need no API key.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"
	"remit/internal/cli"
	"remit/redisstore"
)

// PollInterval is how often a running instance reads what these commands change.
const PollInterval = 2 * time.Second

// Commands are "remit organizations …".
type Commands struct {
	List              listOrganizations   `cmd:"" help:"List all organizations, oldest first."`
	Show              showOrganization    `cmd:"" help:"Show an organization and its usage."`
	Suspend           suspendOrganization `cmd:"" help:"Reject an organization's API keys and its agents' tokens until it is resumed."`
	Resume            resumeOrganization  `cmd:"" help:"Resume a suspended organization."`
	Delete            deleteOrganization  `cmd:"" help:"Permanently delete an organization and all its data."`
	Quota             organizationQuota   `cmd:"" help:"Show an organization's quotas and usage, or set quotas."`
	NewKey            newOrganizationKey  `cmd:"" help:"Print a new API key for an organization and end its other keys."`
	NewBootstrapToken newBootstrapToken   `cmd:"" help:"Print a new bootstrap token, which replaces the one that the service generated."`
}

// operatorStore says which Redis the commands work on.
type operatorStore struct {
	RedisURL   redisstore.URL        `required:"" help:"URL of the Redis that the instances use."`
	Durability redisstore.Durability `default:"local" enum:"local,replicated" help:"When a write is acknowledged, as for the instances: local or replicated."`
}

// work runs an operation on the store. SIGINT and SIGTERM cancel its context.
func (o operatorStore) work(operation func(context.Context, *redisstore.Store) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	goredis.SetLogger(silent{}) // because its errors are returned too
	store, err := redisstore.Open(redisstore.Config{URL: string(o.RedisURL), Durability: o.Durability})
	if err != nil {
		return err
	}
	defer store.Close()
	return operation(ctx, store)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// oneOrganization are the flags of a command on one organization.
type oneOrganization struct {
	operatorStore
	ID string `arg:"" help:"The organization's id."`
}

// workOn is work on one organization. Its errors name the organization.
func (o oneOrganization) workOn(operation func(context.Context, *redisstore.Store, uuid.UUID) error) error {
	id, err := uuid.Parse(o.ID)
	if err != nil || len(o.ID) != len(id.String()) {
		return fmt.Errorf("%q is not an organization id (a UUID)", o.ID)
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
		ID: o.ID, Name: o.Name, Created: timeText(o.Created), Status: "active", Agents: o.Agents,
		OpenSessions: o.OpenSessions, ClosedSessions: o.ClosedSessions, Transactions: o.Transactions,
	}
	if o.Suspension != nil {
		d.Status, d.Suspended = "suspended", timeText(o.Suspension.Since)
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

// Run prints one line per organization.
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
			rows[i] = []string{d.ID.String(), d.Name, d.Status, d.Created, decimal(d.Agents), decimal(d.OpenSessions), decimal(d.Transactions)}
		}
		return c.List(documents, []string{"ID", "NAME", "STATUS", "CREATED", "AGENTS", "OPEN SESSIONS", "TRANSACTIONS"}, rows)
	})
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

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
		return c.Show(d, []cli.Fact{
			{Name: "ID", Value: d.ID.String()}, {Name: "NAME", Value: d.Name}, {Name: "STATUS", Value: d.Status},
			{Name: "SUSPENDED", Value: d.Suspended}, {Name: "CREATED", Value: d.Created}, {Name: "AGENTS", Value: decimal(d.Agents)},
			{Name: "OPEN SESSIONS", Value: decimal(d.OpenSessions)}, {Name: "CLOSED SESSIONS", Value: decimal(d.ClosedSessions)},
			{Name: "TRANSACTIONS", Value: decimal(d.Transactions)},
		})
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
		fmt.Printf("%s is suspended since %s; within %s every instance rejects it\n", id, timeText(suspension.Since), PollInterval)
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
			fmt.Printf("%s is active; within %s every instance accepts it\n", id, PollInterval)
		}
		return err
	})
}

// timeText returns "-" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
