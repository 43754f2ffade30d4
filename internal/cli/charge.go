package cli

import (
	"context"
	"errors"
	"fmt"

	"remit/client"
	"remit/money"
)

type charge struct {
	asEither
	ID    string         `arg:"" name:"session-id" help:"The session's id."`
	Value money.MicroUSD `name:"value-usd" default:"0" env:"-" placeholder:"USD" help:"Value of all --count actions together, with up to 6 decimals. The default is 0."`
	Type  string         `name:"action-type" env:"-" placeholder:"NAME" help:"Type of the action, such as llm.call."`
	Count int64          `default:"1" env:"-" placeholder:"N" help:"Number of actions, 1 to 1000. The default is 1."`
	Scope string         `env:"-" help:"Scope that the token and the session must have."`
	Key   string         `name:"idempotency-key" env:"-" placeholder:"KEY" help:"Idempotency key: repeating the command with it within 24 hours charges only once. By default every run charges."`
}

// Validate is called by the flag parser.
func (c *charge) Validate() error {
	if c.Count < 1 || c.Count > 1000 {
		return errors.New("--count must be from 1 to 1000")
	}
	return nil
}

// Run charges the session and shows its usage.
func (c *charge) Run() error {
	return callAndShow(c, factsOfUsage, func(ctx context.Context, s sessions) (client.Usage, error) {
		return s.charge(ctx, c.ID, client.Charge{
			ActionType: c.Type, Value: c.Value, Count: c.Count, Scope: c.Scope, IdempotencyKey: c.Key,
		})
	})
}

func factsOfUsage(u client.Usage) []Fact {
	return []Fact{
		{"ACTIONS", fmt.Sprintf("%d of %d", u.ActionCount, u.MaxActions)},
		{"VALUE", u.ValueUsed.String() + " of " + usd(u.MaxValue)}, {"HELD", usdIfAny(u.ValueHeld)},
		{"REMAINING", fmt.Sprintf("%d actions, %s", u.RemainingActions, usd(u.RemainingValue))}, {"EXPIRES", moment(u.ExpiresAt)},
		{"WOULD REFUSE", u.WouldRefuse},
	}
}
