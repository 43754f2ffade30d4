package redisstore

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/feed"
	"remit/redisstore/internal/kernel"
)

// LimitError refuses a charge, a hold or a lease that exceeds a limit.
type LimitError struct {
	// max_actions, max_value_usd, max_committed_usd or max_value_usd_per_action; of a lease also max_lease_seconds, expires_at or
	// max_open_leases; of a request for more max_pending_requests
	Limit string
	Usage Usage // as it stands; nothing was charged
	// PerAction is max_value_usd_per_action in the refusal of a begin; nil elsewhere, and without that limit.
	PerAction *money.MicroUSD
}

func (e *LimitError) Error() string { return "the session's " + e.Limit + " is reached" }

// Left returns how many actions and how much value the limit that refused a begin leaves for one. known is false if no such limit
// refused it, or none of value: then less value does not help either.
func Left(err error) (actions int64, value money.MicroUSD, known bool) {
	var limit *LimitError
	var agentLimit *AgentLimitError
	switch {
	case errors.As(err, &limit):
		actions, value = limit.Usage.RemainingActions(), limit.Usage.RemainingValue()
		if limit.PerAction != nil {
			value = min(value, *limit.PerAction)
		}
		return actions, value, true
	case errors.As(err, &agentLimit) && agentLimit.Limit == LimitValuePerDay && agentLimit.Left != nil:
		return 1, *agentLimit.Left, true
	}
	return 0, 0, false
}

// ParentError refuses a child session that does not fit into its parent.
type ParentError struct {
	Parent      uuid.UUID
	*LimitError // Limit may also be expires_at, max_depth or max_open_children
}

// Unwrap returns the limit of the parent.
func (e *ParentError) Unwrap() error { return e.LimitError }

// Needed is what a call wanted that a limit refused.
type Needed struct {
	Actions int64
	Value   money.MicroUSD
}

// NeededError is the refusal of a limit, with what the refused call wanted.
type NeededError struct {
	Needed
	Err error // wraps a *LimitError, an *AgentLimitError or a *BudgetError
}

func (e *NeededError) Error() string { return e.Err.Error() }

// Unwrap returns the refusal.
func (e *NeededError) Unwrap() error { return e.Err }

// Needing adds what a call wanted to the refusal of a limit. It returns any other error unchanged.
func Needing(err error, actions int64, value money.MicroUSD) error {
	var limit *LimitError
	var agentLimit *AgentLimitError
	if !errors.As(err, &limit) && !errors.As(err, &agentLimit) && !kernel.IsBudgetExhausted(err) {
		return err
	}
	return &NeededError{Needed{actions, value}, err}
}

// BelowUsageError refuses a limit below the amount used and held.
type BelowUsageError struct {
	Limit string // max_actions or max_value_usd
	Usage Usage  // as it stands; nothing was changed
}

func (e *BelowUsageError) Error() string { return e.Limit + " must not be below what is used and held" }

// BudgetBelowUsageError refuses a budget below what is reserved and used. Nothing was changed.
type BudgetBelowUsageError struct{ Reserved, Used money.MicroUSD }

func (e *BudgetBelowUsageError) Error() string {
	return "max_value_usd must not be below what is reserved and used"
}

// AboveAskedError refuses to grant more than a request asked for.
type AboveAskedError struct{ Limit string } // max_actions or max_value_usd

func (e *AboveAskedError) Error() string {
	return "more of " + e.Limit + " is granted than was asked for"
}

// ErrGrantsNothing refuses an approval that grants neither actions nor value.
var ErrGrantsNothing = errors.New("the approval grants nothing")

// NotActiveError refuses an operation that needs an active session.
type NotActiveError struct{ Status Status }

func (e *NotActiveError) Error() string { return fmt.Sprintf("the session is %s", e.Status) }

// NotPendingError refuses an operation that needs a pending transaction.
type NotPendingError struct{ Status Status }

func (e *NotPendingError) Error() string { return fmt.Sprintf("the transaction is %s", e.Status) }

// refusals maps the reply codes that only scripts of agents and budgets have to their errors.
var refusals = redisclient.Refusals{
	"agent_limit": refuseAgentLimit,
	"rotation_pending": func(r *reply) error {
		return kernel.OrBroken(r, &PendingKeyError{ID: r.Text(0), SignsFrom: r.Time(1)})
	},
	"not_active": func(r *reply) error {
		status := statusAt(r.Time(3), lifeEvents{ended: r.TimeOrZero(0), revoked: r.TimeOrZero(1), expires: r.Time(2)})
		return kernel.OrBroken(r, &NotActiveError{status})
	},
	"not_pending": func(r *reply) error {
		status := transactionStatus(Status(r.Text(3)), transactionEvents{now: r.Time(0), ended: r.Text(1), expires: r.Time(2)})
		return kernel.OrBroken(r, &NotPendingError{status})
	},
	"below_usage": func(r *reply) error {
		return kernel.OrBroken(r, &BelowUsageError{Limit: r.Text(0), Usage: usageAt(r, 1)})
	},
	"budget_below_usage": func(r *reply) error {
		return kernel.OrBroken(r, &BudgetBelowUsageError{Reserved: kernel.MoneyAt(r, 0), Used: kernel.MoneyAt(r, 1)})
	},
	"limit": func(r *reply) error {
		e := &LimitError{Limit: r.Text(0), Usage: usageAt(r, 1)}
		if r.Has(1 + usagePerAction) {
			e.PerAction = perActionAt(r, 1+usagePerAction)
		}
		return kernel.OrBroken(r, e)
	},
}

// allRefusals are the refusals of all scripts.
func allRefusals() redisclient.Refusals {
	return mergeRefusals(kernel.SharedRefusals, refusals, feed.Refusals)
}

// mergeRefusals merges refusals. It panics if two have one code.
func mergeRefusals(parts ...redisclient.Refusals) redisclient.Refusals {
	all := redisclient.Refusals{}
	for _, part := range parts {
		for code, refusal := range part {
			if all[code] != nil {
				panic("two refusals have the code " + code)
			}
			all[code] = refusal
		}
	}
	return all
}
