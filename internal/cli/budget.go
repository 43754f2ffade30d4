package cli

import (
	"context"

	"remit/client"
	"remit/money"
)

type budgetCommands struct {
	Set    setBudget    `cmd:"" help:"Set the organization's budget, which its root sessions share."`
	Show   showBudget   `cmd:"" help:"Show the organization's budget."`
	Delete deleteBudget `cmd:"" help:"Delete the organization's budget. Sessions keep their limits."`
}

type setBudget struct {
	asOrganization
	MaxValue money.MicroUSD `arg:"" name:"max-value-usd" help:"Maximum value in USD of a period."`
	Period   string         `env:"-" enum:"day,month,none" default:"month" help:"Period after which the budget starts anew, in UTC: day, month or none. The default is month."`
}

// Run sets the budget and shows it.
func (c *setBudget) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		b, err := o.SetBudget(ctx, client.BudgetParams{MaxValue: c.MaxValue, Period: c.Period})
		if err != nil {
			return err
		}
		return c.show(b, factsOfBudget(b))
	})
}

type showBudget struct{ asOrganization }

// Run shows the budget.
func (c *showBudget) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		b, err := o.GetBudget(ctx)
		if err != nil {
			return err
		}
		return c.show(b, factsOfBudget(b))
	})
}

type deleteBudget struct{ asOrganization }

// Run deletes the budget.
func (c *deleteBudget) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		if err := o.DeleteBudget(ctx); err != nil {
			return err
		}
		return c.show(struct {
			Deleted bool `json:"deleted"`
		}{true}, []fact{{"BUDGET", "deleted"}})
	})
}

func factsOfBudget(b client.Budget) []fact {
	facts := []fact{
		{"MAXIMUM", usd(b.MaxValue)}, {"PERIOD", b.Period}, {"RESERVED", usd(b.ValueReserved)}, {"USED", usd(b.ValueUsed)},
		{"REMAINING", usd(b.Remaining)},
	}
	if b.ResetsAt != nil {
		facts = append(facts, fact{"RESETS", moment(*b.ResetsAt)})
	}
	return facts
}
