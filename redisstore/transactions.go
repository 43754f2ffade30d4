package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// A transaction is one of these, or Expired.
const (
	Pending    Status = "pending"
	Committed  Status = "committed"
	RolledBack Status = "rolled_back"
)

// Transaction is an action with a prior state, which is committed or rolled back.
type Transaction struct {
	ID         uuid.UUID
	Agent      uuid.UUID
	Session    uuid.UUID // uuid.Nil for none
	Sequence   int64     // in its session, from 1 on; 0 without a session
	Status     Status    // as it was when read
	ActionType string
	PreState   string         // JSON object; "" in lists
	PostState  string         // JSON object, "" for none, and in lists
	Hold       money.MicroUSD // what it was begun with, or last changed to
	Held       money.MicroUSD // what of that it holds: all while it is pending in a session, then nothing
	Value      money.MicroUSD // what it was charged; 0 unless it was committed
	Overage    money.MicroUSD // what it cost beyond the session's limit
	Reversible bool           // it can be rolled back after it was committed
	Reason     string         // of the rollback, "" for none
	Metadata   string         // JSON object, "" for none, and in lists
	Created    time.Time
	Expires    time.Time // unless it is committed or rolled back before
	Committed  time.Time // zero if it never was
	Late       bool      // it was committed after it had expired
	RolledBack time.Time // zero unless it is
}

// NewTransaction is what a transaction begins with.
type NewTransaction struct {
	Session      uuid.UUID // uuid.Nil for none
	ActionType   string
	PreState     string         // JSON object
	Value        money.MicroUSD // to hold; without a session only noted
	Lifetime     time.Duration  // that it may be pending
	Irreversible bool           // once it is committed
	Metadata     string         // JSON object, "" for none
	Idempotency  *Idempotency   // nil for without an idempotency key
}

// Commit is how a transaction came out.
type Commit struct {
	Value       *money.MicroUSD // what it cost; nil for what it holds
	PostState   string          // JSON object, "" for none
	Idempotency *Idempotency    // nil for without an idempotency key
}

// Rollback is why a transaction is undone.
type Rollback struct {
	Reason      string       // "" for none
	Scopes      []string     // of the access token: any that the session holds too lets it undo a commit
	Idempotency *Idempotency // nil for without an idempotency key
}

var (
	beginTransaction        = newKeyedScript("begin_transaction")
	beginSessionTransaction = newKeyedScript("begin_session_transaction")
	commitTransaction       = newKeyedScript("commit_transaction")
	rollbackTransaction     = newKeyedScript("rollback_transaction")
	getTransaction          = newScript("get_transaction", reads)
)

// Begin begins a transaction of the calling agent. In a session it counts one action and holds the value, if both fit.
// Errors: ErrInvalidToken, ErrUnknownSession, *NotActiveError, *LimitError, ErrKeyReused, *QuotaError, *RateError.
func (s *Store) Begin(ctx context.Context, t AccessToken, n NewTransaction) (Transaction, error) {
	held, err := s.reserveTransaction(ctx, t, n)
	if err != nil {
		return Transaction{}, err
	}
	// The index lies in another cell than what says that the token is live, so that is asked before: a revoked agent must
	// not write there.
	if err := s.CheckToken(ctx, t); err != nil {
		held.settle(err, false)
		return Transaction{}, err
	}
	id := NewID(t.Agent)
	if err := s.indexTransaction(ctx, t.Organization, id); err != nil {
		held.settle(err, false)
		return Transaction{}, err
	}
	r, err := s.begin(ctx, t, id, n)
	if err == nil {
		held.demand.expires = r.Time(3)
	}
	held.settle(err, n.Idempotency != nil && n.Idempotency.Replayed)
	s.tidyAfterBegin(ctx, t, n.Session, id, creation{err, n.Idempotency != nil && n.Idempotency.Replayed})
	if err != nil {
		return Transaction{}, t.actor().refusedTo(err)
	}
	begun := Transaction{
		ID: r.ID(0), Agent: t.Agent, Session: n.Session, Sequence: r.Number(1), Status: Pending,
		ActionType: n.ActionType, PreState: n.PreState, Hold: n.Value, Reversible: !n.Irreversible, Metadata: n.Metadata,
		Created: r.Time(2), Expires: r.Time(3),
	}
	if n.Session != uuid.Nil {
		begun.Held = n.Value
	}
	if r.Err != nil {
		return Transaction{}, r.Err
	}
	if n.Idempotency != nil && n.Idempotency.Replayed {
		return s.asBegun(ctx, t.flow(), begun)
	}
	return begun, nil
}

// asBegun returns the transaction with its objects as the first request gave them, as firstMetadata does.
func (s *Store) asBegun(ctx context.Context, f flow, begun Transaction) (Transaction, error) {
	first, err := s.transactionFacts(ctx, f, begun.Agent, begun.ID)
	switch err {
	case nil:
		begun.PreState, begun.Metadata = first.PreState, first.Metadata
	case ErrUnknownTransaction: // it is not kept any more
	default:
		return Transaction{}, err
	}
	return begun, nil
}

func (s *Store) begin(ctx context.Context, t AccessToken, id uuid.UUID, n NewTransaction) (*reply, error) {
	act := t.actor()
	if n.Session == uuid.Nil {
		keys := []string{s.keys.agent(t.Agent), s.keys.transaction(t.Agent, id),
			s.keys.agentTransactions(t.Agent), s.keys.events(t.Agent)}
		args := []any{t.Organization, t.Agent, act.family, id,
			n.Lifetime.Milliseconds(), s.config.Retention.Milliseconds(), s.audit(ctx, act), "hv", int64(n.Value)}
		return s.perform(ctx, beginTransaction, act, n.Idempotency, keys, append(args, n.kept()...)...)
	}
	keys := []string{s.keys.agent(t.Agent), s.keys.session(t.Agent, n.Session), s.keys.holds(t.Agent, n.Session),
		s.keys.transaction(t.Agent, id), s.keys.sessionTransactions(t.Agent, n.Session),
		s.keys.agentTransactions(t.Agent), s.keys.agentSessions(t.Agent), s.keys.events(t.Agent)}
	args := []any{t.Organization, t.Agent, act.family, n.Session, id, int64(n.Value),
		n.Lifetime.Milliseconds(), s.config.Retention.Milliseconds(), s.audit(ctx, act)}
	args = append(args, n.kept()...)
	return s.look(ctx, act, n.Session, func() (*reply, error) {
		return s.perform(ctx, beginSessionTransaction, act, n.Idempotency, keys, args...)
	})
}

// kept returns names and values of what a transaction's scripts only keep.
func (n NewTransaction) kept() []any {
	fields := []any{"ty", n.ActionType, "ps", n.PreState}
	if n.Irreversible {
		fields = append(fields, "ir", 1)
	}
	if n.Metadata != "" {
		fields = append(fields, "md", n.Metadata)
	}
	return fields
}

// indexTransaction notes a coming transaction in its organization's index, before it is begun: none can exist that its
// organization does not list.
func (s *Store) indexTransaction(ctx context.Context, organization, id uuid.UUID) error {
	added, err := s.client.Call(ctx, flow{Owner: organization}, writes, "zadd", s.keys.organizationTransactions(organization), "0", string(id[:]))
	if _, isCount := added.(int64); err == nil && !isCount {
		return errReply
	}
	return nothingVisible(err)
}

// Commit commits a transaction of the calling agent that is pending, or has expired (late): what it cost is charged as far
// as the session's limit allows, the rest is its overage. Errors: ErrInvalidToken, ErrUnknownTransaction, *NotPendingError, ErrKeyReused.
func (s *Store) Commit(ctx context.Context, t AccessToken, id uuid.UUID, c Commit) (Transaction, error) {
	act := t.actor()
	facts, err := s.transactionFacts(ctx, act.flow, t.Agent, id)
	if err != nil && err != ErrUnknownTransaction { // as in actOnTransaction
		return Transaction{}, err
	}
	r, err := s.look(ctx, act, facts.Session, func() (*reply, error) {
		return s.perform(ctx, commitTransaction, act, c.Idempotency, s.transactionKeys(act, facts), t.Organization, t.Agent,
			act.family, id, orEmpty((*int64)(c.Value)), c.PostState, s.settledRetention(c.Idempotency), s.audit(ctx, act))
	})
	return s.settled(act, c.Idempotency, c.PostState)(facts.standing(act, r, err))
}

// Rollback rolls a transaction back: it gives free what it holds, or gives back what it was charged. Errors:
// ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownTransaction, *NotPendingError, ErrNotReversible, ErrKeyReused; to an agent
// that undoes a commit ErrTokenLacksScope or a *ScopeError.
func (s *Store) Rollback(ctx context.Context, c Caller, id uuid.UUID, b Rollback) (Transaction, error) {
	act, facts, err := s.actOnTransaction(ctx, c, id, b.Idempotency)
	if err != nil {
		return Transaction{}, s.released(ctx, c, b.Idempotency, err)
	}
	r, err := s.look(ctx, act, facts.Session, func() (*reply, error) {
		return s.perform(ctx, rollbackTransaction, act, b.Idempotency, s.transactionKeys(act, facts), act.organization,
			act.agent, act.family, id, b.Reason, s.settledRetention(b.Idempotency), s.audit(ctx, act),
			strings.Join(b.Scopes, " "))
	})
	undone, err := s.settled(act, b.Idempotency, "")(facts.standing(act, r, err))
	return undone, s.released(ctx, c, b.Idempotency, err)
}

// Transaction returns a transaction that the caller may see. Errors: ErrInvalidAPIKey or ErrInvalidToken,
// ErrUnknownTransaction.
func (s *Store) Transaction(ctx context.Context, c Caller, id uuid.UUID) (Transaction, error) {
	act, facts, err := s.actOnTransaction(ctx, c, id, nil)
	if err != nil {
		return Transaction{}, err
	}
	keys := []string{s.keys.agent(act.agent), s.keys.session(act.agent, facts.Session), s.keys.transaction(act.agent, id)}
	r, err := s.client.Run(ctx, act.flow, getTransaction, keys, act.organization, act.agent, act.family)
	return facts.standing(act, r, err)
}

// settledRetention is how long a settled transaction is kept, in ms: while an idempotency key's outcome is, at least, for
// a replay tells what the transaction was.
func (s *Store) settledRetention(once *Idempotency) int64 {
	if once != nil {
		return max(s.config.Retention, onceLifetime).Milliseconds()
	}
	return s.config.Retention.Milliseconds()
}

func (s *Store) transactionKeys(act actor, t Transaction) []string {
	return []string{s.keys.agent(act.agent), s.keys.session(act.agent, t.Session), s.keys.holds(act.agent, t.Session),
		s.keys.transaction(act.agent, t.ID), s.keys.sessionTransactions(act.agent, t.Session),
		s.keys.agentTransactions(act.agent), s.keys.events(act.agent)}
}

// actOnTransaction returns the actor for an operation on the transaction, and what never changes of it. Whether the
// actor may see it is for the operation's script to say.
func (s *Store) actOnTransaction(ctx context.Context, c Caller, id uuid.UUID, once *Idempotency) (actor, Transaction, error) {
	cell := id // an API key's caller knows nothing of its agent; the id alone tells where to look
	if c.Token != nil {
		cell = c.Token.Agent
	}
	if once != nil {
		once.at = id
	}
	act, err := s.actOnAgent(ctx, c, cell, once)
	if err != nil {
		return actor{}, Transaction{}, err
	}
	facts, err := s.transactionFacts(ctx, act.flow, cell, id)
	if c.Key != nil {
		act.agent = facts.Agent
	} else if err == ErrUnknownTransaction { // which is for the script to say, after it has checked the token
		err = nil
	}
	return act, facts, err
}

// transactionFacts reads what never changes of a transaction, or returns ErrUnknownTransaction with its id alone.
func (s *Store) transactionFacts(ctx context.Context, f flow, agent, id uuid.UUID) (Transaction, error) {
	found, err := s.client.Call(ctx, f, reads, "hmget", s.keys.transaction(agent, id), transactionFacts...)
	if err != nil {
		return Transaction{}, err
	}
	values, ok := found.([]any)
	switch {
	case !ok || len(values) != len(transactionFacts):
		return Transaction{}, errReply
	case values[0] == nil:
		return Transaction{ID: id}, ErrUnknownTransaction
	}
	return readFacts(id, &reply{Values: values})
}

// transactionFacts are the fields that never change, in the order in which they are read, and hv, which scripts answer too
// because it may change meanwhile; listedFacts leaves out what may be large.
var (
	transactionFacts = append(listedFacts, "md", "ps")
	listedFacts      = []string{"a", "s", "q", "ty", "hv", "ir", "b"}
)

func readFacts(id uuid.UUID, r *reply) (Transaction, error) {
	t := Transaction{
		ID: id, Agent: r.ID(0), Sequence: r.NumberOr0(2), ActionType: r.Text(3), Hold: money.MicroUSD(r.NumberOr0(4)),
		Reversible: r.Optional(5) == "", Created: r.Time(6),
	}
	if r.Optional(1) != "" {
		t.Session = r.ID(1)
	}
	if len(r.Values) == len(transactionFacts) {
		t.Metadata, t.PreState = r.Optional(7), r.Text(8)
	}
	return t, r.Err
}

// standing returns the transaction with where it stands, as a script has answered, or the script's refusal.
func (t Transaction) standing(act actor, r *reply, err error) (Transaction, error) {
	if err != nil {
		if err = act.refusedTo(err); err == ErrUnknownSession {
			err = ErrUnknownTransaction
		}
		return Transaction{}, err
	}
	events, state := transactionEvents{r.Time(0), r.Text(1), r.Time(2)}, r.List(3)
	if r.Err != nil {
		return Transaction{}, r.Err
	}
	return t.with(state, events)
}

// with returns the transaction with its changing fields, in the order st, v, ov, cm, rb, re, po, hv. The last may be missing:
// lists leave po out, and outcomes that were an earlier version kept for an idempotency key have no hv.
func (t Transaction) with(r *reply, events transactionEvents) (Transaction, error) {
	t.Status = transactionStatus(Status(r.Text(0)), events)
	t.Expires = events.expires
	t.Value, t.Overage = money.MicroUSD(r.NumberOr0(1)), money.MicroUSD(r.NumberOr0(2))
	t.Committed, t.RolledBack = r.TimeOrZero(3), r.TimeOrZero(4)
	t.Reason = r.Optional(5)
	if len(r.Values) > 6 {
		t.PostState = r.Optional(6)
	}
	if len(r.Values) > 7 {
		t.Hold = money.MicroUSD(r.NumberOr0(7))
	}
	t.Late = !t.Committed.IsZero() && !t.Committed.Before(t.Expires)
	t.Held = 0
	if t.Status == Pending && t.Session != uuid.Nil {
		t.Held = t.Hold
	}
	if t.Status == RolledBack && t.RolledBack.IsZero() {
		t.RolledBack = events.sessionEnd()
	}
	return t, r.Err
}
