package client

import (
	"context"
	"net/http"
	"time"

	"remit/money"
)

// BudgetParams are a budget of an organization.
type BudgetParams struct {
	MaxValue money.MicroUSD `json:"max_value_usd"`
	Period   string         `json:"period"` // after which it starts anew, in UTC: day, month or none
}

// Budget is what an organization's root sessions may spend in a period. A root session reserves its MaxValue when it is created or
// topped up, and gives back what it did not use when it is over.
type Budget struct {
	MaxValue        money.MicroUSD `json:"max_value_usd"`
	Period          string         `json:"period"` // day, month or none
	ValueReserved   money.MicroUSD `json:"value_reserved_usd"`
	ValueUsed       money.MicroUSD `json:"value_used_usd"`
	Remaining       money.MicroUSD `json:"remaining_usd"`
	PeriodStartedAt *time.Time     `json:"period_started_at"` // nil: the period is none
	ResetsAt        *time.Time     `json:"resets_at"`         // nil: the period is none
}

const budgetPath = "/v1/budget"

// SetBudget sets the organization's budget or changes it. A value below what is reserved and used is a *LimitBelowUsage.
func (o *Organization) SetBudget(ctx context.Context, p BudgetParams) (Budget, error) {
	return decoded[Budget](ctx, o.caller, call{method: http.MethodPut, path: budgetPath, body: p, semantics: idempotent})
}

// GetBudget reads the organization's budget. Without one the error is [ErrNotFound].
func (o *Organization) GetBudget(ctx context.Context) (Budget, error) {
	return decoded[Budget](ctx, o.caller, call{method: http.MethodGet, path: budgetPath})
}

// DeleteBudget removes the organization's budget: nothing bounds its root sessions together any more. Sessions keep their limits.
func (o *Organization) DeleteBudget(ctx context.Context) error {
	return o.caller.remove(ctx, budgetPath)
}
