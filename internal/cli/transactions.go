package cli

import (
	"context"
	"errors"
	"time"

	"remit/client"
	"remit/money"
)

type transactionCommands struct {
	Begin    beginTransaction    `cmd:"" help:"Begin a transaction, which holds a value until it is committed or rolled back."`
	List     listTransactions    `cmd:"" help:"List transactions, newest first."`
	Show     showTransaction     `cmd:"" help:"Show a transaction."`
	Update   updateTransaction   `cmd:"" help:"Change the hold or the expiry of a pending transaction."`
	Commit   commitTransaction   `cmd:"" help:"Commit a transaction and charge its value."`
	Rollback rollbackTransaction `cmd:"" help:"Roll back a transaction and return its value to the session."`
}

type beginTransaction struct {
	asAgent
	Session      string         `arg:"" name:"session-id" help:"The session's id."`
	Type         string         `name:"action-type" env:"-" required:"" placeholder:"NAME" help:"Type of the action, such as payment."`
	Value        money.MicroUSD `name:"value-usd" default:"0" env:"-" placeholder:"USD" help:"Maximum cost, held until the transaction is committed or rolled back. The default is 0."`
	ExpiresIn    duration       `default:"5m" env:"-" placeholder:"DURATION" help:"Time until the hold is released, such as 90s or 2h, up to 30d. The default is 5m."`
	PreState     metadata       `env:"-" placeholder:"JSON" help:"State to restore after a rollback: a JSON object."`
	Irreversible bool           `env:"-" help:"The transaction cannot be rolled back once committed."`
	OnExpiry     string         `env:"-" enum:"release,commit" default:"release" help:"What becomes of the hold if it expires: release, or commit, which spends it, also after the session has ended. The default is release."`
	Metadata     metadata       `env:"-" placeholder:"JSON" help:"Metadata: a JSON object."`
	Key          string         `name:"idempotency-key" env:"-" placeholder:"KEY" help:"Idempotency key: repeating the command with it within 24 hours begins only one transaction."`
}

// Validate is called by the flag parser.
func (c *beginTransaction) Validate() error {
	if time.Duration(c.ExpiresIn) < time.Second {
		return errors.New("--expires-in must be at least 1s")
	}
	return nil
}

// Run begins the transaction.
func (c *beginTransaction) Run() error {
	return callAndShow(c, factsOfTransaction, func(ctx context.Context, agent *client.Agent) (client.TransactionInfo, error) {
		begun, err := agent.Session(c.Session).Begin(ctx, client.TransactionParams{
			ActionType: c.Type, Value: c.Value, ExpiresIn: time.Duration(c.ExpiresIn), PreState: c.PreState.sent(),
			Irreversible: c.Irreversible, OnExpiry: c.OnExpiry, Metadata: c.Metadata.sent(), IdempotencyKey: c.Key,
		})
		if err != nil {
			return client.TransactionInfo{}, err
		}
		return begun.Info(), nil
	})
}

type listTransactions struct {
	asEither
	Session   string `env:"-" placeholder:"ID" help:"List only this session's transactions."`
	Status    string `env:"-" enum:"pending,committed,rolled_back,expired,all" default:"all" help:"List only transactions in this status: pending, committed, rolled_back, expired or all. The default is all."`
	SettledBy string `env:"-" enum:"expiry,all" default:"all" help:"List only transactions whose hold was spent because it expired (expiry), or all. The default is all."`
}

// Run lists the transactions.
func (c *listTransactions) Run() error {
	return c.call(func(ctx context.Context, s sessions) error {
		found := s.transactions(ctx, client.TransactionFilter{Status: unlessAll(c.Status), SessionID: c.Session, SettledBy: unlessAll(c.SettledBy)})
		return list(c.Output, found, "ID\tSESSION\tSTATUS\tTYPE\tVALUE\tCREATED", func(t client.TransactionInfo) []string {
			return []string{t.ID, t.SessionID, t.Status, t.ActionType, usd(t.Value), moment(t.CreatedAt)}
		})
	})
}

type showTransaction struct {
	asEither
	ID string `arg:"" help:"The transaction's id."`
}

// Run shows the transaction.
func (c *showTransaction) Run() error {
	return callAndShow(c, factsOfTransaction, func(ctx context.Context, s sessions) (client.TransactionInfo, error) {
		return s.transaction(c.ID).Get(ctx)
	})
}

type updateTransaction struct {
	asAgent
	ID        string          `arg:"" help:"The transaction's id."`
	Value     *money.MicroUSD `name:"value-usd" env:"-" placeholder:"USD" help:"New maximum cost to hold."`
	ExpiresIn *duration       `env:"-" placeholder:"DURATION" help:"Time from now until the hold is released, such as 90s or 2h, up to 30d."`
}

// Validate is called by the flag parser.
func (c *updateTransaction) Validate() error {
	switch {
	case c.Value == nil && c.ExpiresIn == nil:
		return errors.New("set --value-usd, --expires-in, or both")
	case c.ExpiresIn != nil && time.Duration(*c.ExpiresIn) < time.Second:
		return errors.New("--expires-in must be at least 1s")
	}
	return nil
}

// Run changes the transaction.
func (c *updateTransaction) Run() error {
	return callAndShow(c, factsOfTransaction, func(ctx context.Context, agent *client.Agent) (client.TransactionInfo, error) {
		t := agent.Transaction(c.ID)
		err := t.Update(ctx, client.TransactionChanges{Value: c.Value, ExpiresIn: time.Duration(orZero(c.ExpiresIn))})
		return t.Info(), err
	})
}

type commitTransaction struct {
	asAgent
	ID        string          `arg:"" help:"The transaction's id."`
	Value     *money.MicroUSD `name:"value-usd" env:"-" placeholder:"USD" help:"Actual cost. The default is the value held."`
	PostState metadata        `env:"-" placeholder:"JSON" help:"State after the action: a JSON object."`
}

// Run commits the transaction and shows it.
func (c *commitTransaction) Run() error {
	return callAndShow(c, factsOfTransaction, func(ctx context.Context, agent *client.Agent) (client.TransactionInfo, error) {
		t := agent.Transaction(c.ID)
		err := t.Commit(ctx, client.CommitParams{Value: c.Value, PostState: c.PostState.sent()})
		return t.Info(), err
	})
}

type rollbackTransaction struct {
	showTransaction
	Reason string `env:"-" help:"Reason, for the audit trail."`
}

// Run rolls the transaction back, even if it is committed, and shows it.
func (c *rollbackTransaction) Run() error {
	return callAndShow(c, factsOfTransaction, func(ctx context.Context, s sessions) (client.TransactionInfo, error) {
		t := s.transaction(c.ID)
		err := t.Reverse(ctx, c.Reason)
		return t.Info(), err
	})
}

func factsOfTransaction(t client.TransactionInfo) []Fact {
	return []Fact{
		{"ID", t.ID}, {"AGENT", t.AgentID}, {"SESSION", t.SessionID}, {"STATUS", t.Status}, {"TYPE", t.ActionType},
		{"VALUE", usd(t.Value)}, {"HELD", usdIfAny(t.ValueHeld)}, {"OVERAGE", usdIfAny(t.Overage)}, {"REASON", t.Reason},
		{"PRE-STATE", shownMetadata(t.PreState)}, {"POST-STATE", shownMetadata(t.PostState)}, {"METADATA", shownMetadata(t.Metadata)},
		{"CREATED", moment(t.CreatedAt)}, {"EXPIRES", moment(t.ExpiresAt)},
		{"COMMITTED", moment(t.CommittedAt)}, {"ROLLED BACK", moment(t.RolledBackAt)},
	}
}
