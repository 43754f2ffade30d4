package client

import (
	"context"
	"iter"
)

// Agent calls the service as one agent, with tokens that it gets, keeps and renews by itself. It should live as long as
// the process: each new Agent exchanges the secret anew.
type Agent struct {
	id     string
	caller *caller
}

// ID is the agent's id.
func (a *Agent) ID() string { return a.id }

// Token returns an access token for calls that this package does not make, such as those through a gateway. It is
// valid for a while yet; ask again before each use instead of keeping it.
func (a *Agent) Token(ctx context.Context) (string, error) { return a.caller.tokens.get(ctx, "") }

// Refresh replaces the access token now, however long it would live. The one before stays valid until it expires.
func (a *Agent) Refresh(ctx context.Context) error {
	_, err := a.caller.tokens.renew(ctx)
	return err
}

// Session is the agent's session with this id. Nothing is sent.
func (a *Agent) Session(id string) *Session { return &Session{id: id, caller: a.caller} }

// Sessions yields the agent's sessions, newest first. The filter's AgentID is not needed.
func (a *Agent) Sessions(ctx context.Context, f SessionFilter) iter.Seq2[SessionSummary, error] {
	return a.caller.sessions(ctx, f)
}

// ChargeMany makes up to 500 charges in one request, each all or nothing, and returns their results in the same order. The
// error is nil when there are results, also if all of them are refusals.
func (a *Agent) ChargeMany(ctx context.Context, charges []SessionCharge, options BatchOptions) ([]Result, error) {
	return a.caller.chargeMany(ctx, charges, options)
}

// Begin begins a transaction without a session: it keeps a prior state and a decision, and holds no value.
func (a *Agent) Begin(ctx context.Context, p TransactionParams) (*Transaction, error) {
	return a.caller.begin(ctx, "", p)
}

// Transaction is the agent's transaction with this id, in whatever state it is. Nothing is sent.
func (a *Agent) Transaction(id string) *Transaction { return openTransaction(a.caller, id) }

// Transactions yields the agent's transactions, newest first, without their states and metadata.
func (a *Agent) Transactions(ctx context.Context, f TransactionFilter) iter.Seq2[TransactionInfo, error] {
	return a.caller.transactions(ctx, f)
}

// Events yields the agent's audit trail, oldest first, from after the event with the given id, or from the oldest that
// is kept if that is empty. At the end of the trail it waits for what comes next. It ends with the ctx, or with the
// first error that retries did not mend, which it yields; to go on, call it again with the id of the last event.
func (a *Agent) Events(ctx context.Context, after string) iter.Seq2[Event, error] {
	return a.caller.events(ctx, a.id, after, eventWait)
}

// ListEvents yields the audit trail as Events does, and ends where it ends now.
func (a *Agent) ListEvents(ctx context.Context, after string) iter.Seq2[Event, error] {
	return a.caller.events(ctx, a.id, after, 0)
}
