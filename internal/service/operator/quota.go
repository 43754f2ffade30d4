package operator

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"remit/internal/cli"
	"remit/redisstore"
)

type organizationQuota struct {
	oneOrganization
	Quotas string `arg:"" optional:"" name:"name=value,…" help:"Quotas to set: agents, open_sessions, pending_transactions, refresh_families, idempotency_keys, bytes. 0 means unlimited; default restores the instances' own. Without it the quotas are shown."`
	cli.Output
}

// Run sets the named quotas and shows all of them.
func (c *organizationQuota) Run() error {
	var changes map[string]int64
	if c.Quotas != "" {
		var err error
		if changes, err = redisstore.ParseQuotas(c.Quotas); err != nil {
			return err
		}
	}
	return c.workOn(func(ctx context.Context, store *redisstore.Store, id uuid.UUID) error {
		if len(changes) > 0 {
			if err := store.SetQuotas(ctx, id, changes); err != nil {
				return err
			}
		}
		usage, quotas, err := store.OrganizationUsage(ctx, id)
		if err != nil {
			return err
		}
		return c.List(struct {
			Quotas map[string]int64 `json:"quotas"`
			Usage  map[string]int64 `json:"usage"`
		}{quotas, usage}, []string{"QUOTA", "USED", "MAX"}, quotaRows(usage, quotas))
	})
}

func quotaRows(usage, quotas map[string]int64) [][]string {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		most := "any"
		if quotas[name] > 0 {
			most = decimal(quotas[name])
		}
		rows = append(rows, []string{name, decimal(usage[name]), most})
	}
	return rows
}
