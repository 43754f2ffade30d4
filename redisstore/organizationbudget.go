package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

var (
	setBudget    = kernel.NewScript("budgets/set_budget", writes).Watched(wroteThreshold(6))
	getBudget    = kernel.NewScript("budgets/get_budget", reads)
	deleteBudget = kernel.NewScript("budgets/delete_budget", writes)
)

// BudgetPeriod is how long a budget lasts before what is used restarts at 0, in UTC.
type BudgetPeriod string

// The periods of a budget.
const (
	BudgetDay     BudgetPeriod = "day"
	BudgetMonth   BudgetPeriod = "month"
	BudgetForever BudgetPeriod = "none"
)

// OrganizationBudget bounds what all sessions of an organization may spend in a period.
type OrganizationBudget struct {
	MaxValue money.MicroUSD
	Period   BudgetPeriod
	Reserved money.MicroUSD // by root sessions that are not closed
	Used     money.MicroUSD // in this period, by root sessions that are closed
	Started  time.Time      // the period; zero for BudgetForever
	Resets   time.Time      // zero for BudgetForever
}

// Remaining is the value that new root sessions and top-ups may still reserve.
func (b OrganizationBudget) Remaining() money.MicroUSD { return b.MaxValue - b.Reserved - b.Used }

// SetBudget sets the budget of the key's organization. Errors: ErrInvalidAPIKey, *BudgetBelowUsageError.
func (s *Store) SetBudget(ctx context.Context, key APIKey, max money.MicroUSD, period BudgetPeriod) (OrganizationBudget, error) {
	keys := []string{s.keys.Organization(key.Organization), s.keys.OrganizationBudget(key.Organization), s.keys.Events(key.Organization)}
	r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), setBudget, keys, key.Credential(), int64(max), string(period), s.core.AuditAs(ctx, kernel.ActorKey))
	if err != nil {
		return OrganizationBudget{}, err
	}
	s.notePeriod(ctx, key.Organization)
	return readBudgetReply(r)
}

// notePeriod enters the end of the budget's period among what is due. Failures are ignored: the next use of the budget records the end too.
func (s *Store) notePeriod(ctx context.Context, organization uuid.UUID) {
	if s.recorder == nil {
		return
	}
	if resets, err := s.endPeriod(ctx, organization); err == nil && resets != "" {
		_ = s.feeds.NoteDue(ctx, organization, resets)
	}
}

// Budget returns the budget of the key's organization. Errors: ErrInvalidAPIKey, ErrNoBudget.
func (s *Store) Budget(ctx context.Context, key APIKey) (OrganizationBudget, error) {
	r, err := s.runOnBudget(ctx, key, getBudget)
	if err != nil {
		return OrganizationBudget{}, err
	}
	return readBudgetReply(r)
}

// DeleteBudget removes the budget of the key's organization. Errors: ErrInvalidAPIKey, ErrNoBudget.
func (s *Store) DeleteBudget(ctx context.Context, key APIKey) error {
	_, err := s.runOnBudget(ctx, key, deleteBudget)
	return err
}

func (s *Store) runOnBudget(ctx context.Context, key APIKey, sc *script) (*reply, error) {
	keys := []string{s.keys.Organization(key.Organization), s.keys.OrganizationBudget(key.Organization)}
	return s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), sc, keys, key.Credential())
}

func readBudgetReply(r *reply) (OrganizationBudget, error) {
	b := OrganizationBudget{
		MaxValue: kernel.MoneyAt(r, 0), Period: BudgetPeriod(r.Text(1)), Reserved: kernel.MoneyAt(r, 2), Used: kernel.MoneyAt(r, 3),
		Resets: r.TimeOrZero(5),
	}
	if b.Period != BudgetForever {
		b.Started = r.Time(4)
	}
	return b, r.Err
}
