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
	return callAndShow(c, factsOfBudget, func(ctx context.Context, o *client.Organization) (client.Budget, error) {
		return o.SetBudget(ctx, client.BudgetParams{MaxValue: c.MaxValue, Period: c.Period})
	})
}

type showBudget struct{ asOrganization }

// Run shows the budget.
func (c *showBudget) Run() error {
	return callAndShow(c, factsOfBudget, func(ctx context.Context, o *client.Organization) (client.Budget, error) {
		return o.GetBudget(ctx)
	})
}

type deleteBudget struct{ asOrganization }

// Run deletes the budget.
func (c *deleteBudget) Run() error {
	facts := func(ended) []Fact { return []Fact{{"BUDGET", "deleted"}} }
	return callAndShow(c, facts, func(ctx context.Context, o *client.Organization) (ended, error) {
		return ended{Deleted: true}, o.DeleteBudget(ctx)
	})
}

func factsOfBudget(b client.Budget) []Fact {
	facts := []Fact{
		{"MAXIMUM", usd(b.MaxValue)}, {"PERIOD", b.Period}, {"RESERVED", usd(b.ValueReserved)}, {"USED", usd(b.ValueUsed)},
		{"REMAINING", usd(b.Remaining)},
	}
	if b.ResetsAt != nil {
		facts = append(facts, Fact{"RESETS", moment(*b.ResetsAt)})
	}
	return facts
}
