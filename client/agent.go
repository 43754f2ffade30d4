package client

import (
	"context"
	"iter"
)

// Agent calls the service as one agent and renews its tokens itself. Keep one for the life of the process: each new Agent
// exchanges its credential again.
type Agent struct {
	id     string
	caller *caller
}

// ID returns the agent's id.
func (a *Agent) ID() string { return a.id }

// Token returns a valid access token for other requests, such as those through a proxy. Call it before each use instead of
// keeping the token. Those of an agent with a DPoP key also need a proof: see Prove.
func (a *Agent) Token(ctx context.Context) (string, error) {
	if a.caller.tokens == nil {
		return a.caller.bearer.reveal(), nil
	}
	return a.caller.tokens.get(ctx, "")
}

// Refresh replaces the access token now. The previous one stays valid until it expires.
func (a *Agent) Refresh(ctx context.Context) error {
	if a.caller.tokens == nil {
		return errNotRenewable{}
	}
	_, err := a.caller.tokens.renew(ctx)
	return err
}

// Session returns the agent's session with this id. It sends nothing.
func (a *Agent) Session(id string) *Session { return &Session{id: id, agent: a.id, caller: a.caller} }

// Sessions yields the agent's sessions, newest first. It needs no AgentID in the filter.
func (a *Agent) Sessions(ctx context.Context, f SessionFilter) iter.Seq2[SessionSummary, error] {
	return a.caller.sessions(ctx, f)
}

// ChargeMany makes up to 500 charges in one request, each all or nothing, and returns their results in the same order. Its
// error is nil whenever there are results, even if every charge was refused.
func (a *Agent) ChargeMany(ctx context.Context, charges []SessionCharge, options BatchOptions) ([]Result, error) {
	return a.caller.chargeMany(ctx, charges, options)
}

// Begin begins a transaction without a session: it records a prior state and an outcome, and holds no value.
func (a *Agent) Begin(ctx context.Context, p TransactionParams) (*Transaction, error) {
	return a.caller.begin(ctx, p.body(""), p.IdempotencyKey)
}

// Transaction returns the agent's transaction with this id. It sends nothing.
func (a *Agent) Transaction(id string) *Transaction { return openTransaction(a.caller, id) }

// Transactions yields the agent's transactions, newest first, without their states and metadata.
func (a *Agent) Transactions(ctx context.Context, f TransactionFilter) iter.Seq2[TransactionInfo, error] {
	return a.caller.transactions(ctx, f)
}

// Events yields the agent's audit trail, oldest first. It starts after the event with the given id, or with the oldest event
// kept if that is empty, and waits for new events at the end. It resumes after a break, also when the service is unavailable for
// long. It ends when the ctx does, or when the service refuses it, and then yields the error. After a restart of your program,
// call it with the id of the last event that you have processed.
func (a *Agent) Events(ctx context.Context, after string) iter.Seq2[Event, error] {
	return a.caller.events(ctx, a.id, after, eventWait)
}

// ListEvents yields the audit trail as Events does, without waiting for new events.
func (a *Agent) ListEvents(ctx context.Context, after string) iter.Seq2[Event, error] {
	return a.caller.events(ctx, a.id, after, 0)
}
