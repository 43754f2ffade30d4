package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// A transaction is one of these, or Expired.
const (
	Pending    Status = "pending"
	Committed  Status = "committed"
	RolledBack Status = "rolled_back"
)

// Transaction is an action with a pre-state that is committed or rolled back.
type Transaction struct {
	ID         uuid.UUID
	Agent      uuid.UUID
	Session    uuid.UUID // uuid.Nil for none
	Sequence   int64     // in its session, from 1 on; 0 without a session
	Status     Status    // at the time of the read
	ActionType string
	PreState   string         // JSON object; "" in lists
	PostState  string         // JSON object, "" for none, and in lists
	Hold       money.MicroUSD // as begun or last changed
	Held       money.MicroUSD // Hold while it is pending in a session, else 0
	Value      money.MicroUSD // charged by the commit; 0 unless it was committed
	Overage    money.MicroUSD // cost beyond the session's limit
	Reversible bool           // it can be rolled back after its commit
	Reason     string         // of the rollback, "" for none
	Metadata   string         // JSON object, "" for none, and in lists
	Created    time.Time
	Expires    time.Time // unless it is committed or rolled back before
	Committed  time.Time // zero if it was never committed
	Late       bool      // it was committed after its expiry
	// SpentOnExpiry says that its hold is spent if it expires, instead of released: then it is committed.
	SpentOnExpiry   bool
	SettledByExpiry bool      // so it was; a commit may still correct it
	HeldByGateway   bool      // the metering gateway holds it: no agent settles or changes it
	RolledBack      time.Time // zero unless it is rolled back
	// WouldRefuse is, in the result of a begin or a change of the hold in a session that observes, the limit that would have
	// refused it; else "".
	WouldRefuse string
	// SessionLeft is, in the result of a begin in a session, what that has left with the hold taken.
	SessionLeft money.MicroUSD
	// Repeated says, in the result of a settlement by the gateway, that it was settled before: this has changed nothing.
	Repeated bool
}

// NewTransaction describes a transaction to begin.
type NewTransaction struct {
	Session       uuid.UUID // uuid.Nil for none
	ActionType    string
	PreState      string         // JSON object
	Value         money.MicroUSD // to hold; without a session it is only stored
	Lifetime      time.Duration  // how long it may be pending
	Irreversible  bool           // its commit cannot be rolled back
	SpentOnExpiry bool           // in a session: its hold is spent if it expires, and outlives the session
	HeldByGateway bool           // see HeldTransaction; it must be in a session, SpentOnExpiry and Irreversible
	Metadata      string         // JSON object, "" for none
	Idempotency   *Idempotency   // nil for no idempotency key
	DryRun        bool           // only asks what the begin would do; without Idempotency
}

// storedFields returns the names and values of fields that the scripts only store.
func (n NewTransaction) storedFields() []any {
	fields := []any{"ty", n.ActionType, "ps", n.PreState}
	if n.Irreversible {
		fields = append(fields, "ir", 1)
	}
	if n.HeldByGateway {
		fields = append(fields, "hb", 1)
	}
	if n.Metadata != "" {
		fields = append(fields, "md", n.Metadata)
	}
	return fields
}

// Commit is the result of a transaction's action.
type Commit struct {
	Value       *money.MicroUSD // its cost; nil for the held value
	PostState   string          // JSON object, "" for none
	Idempotency *Idempotency    // nil for no idempotency key
}

// Rollback says why a transaction is rolled back.
type Rollback struct {
	Reason      string       // "" for none
	Scopes      []string     // of the access token; to roll back a commit, the session must hold one of them
	Idempotency *Idempotency // nil for no idempotency key
}

var (
	beginTransaction        = kernel.NewKeyedScript("budgets/begin_transaction")
	beginSessionTransaction = kernel.NewKeyedScript("budgets/begin_session_transaction")
	commitTransaction       = kernel.NewKeyedScript("budgets/commit_transaction")
	rollbackTransaction     = kernel.NewKeyedScript("budgets/rollback_transaction")
	getTransaction          = kernel.NewScript("budgets/get_transaction", reads)

	dryBegin        = kernel.NewDryScript("budgets/begin_transaction")
	drySessionBegin = kernel.NewDryScript("budgets/begin_session_transaction")
)

// Begin begins a transaction of the calling agent. In a session it counts one action and holds the value, if both fit.
// Errors: ErrInvalidToken, ErrUnknownSession, *NotActiveError, *LimitError, *AgentLimitError (see Left), *QuotaError, *RateError,
// ErrNotHeldSo; with an idempotency key ErrIdempotencyKeyReused. A dry run begins nothing, and returns the transaction without an id, or the error, that Begin would
// have returned.
func (s *Store) Begin(ctx context.Context, t AccessToken, n NewTransaction) (Transaction, error) {
	if n.HeldByGateway && (n.Session == uuid.Nil || !n.SpentOnExpiry || !n.Irreversible) {
		return Transaction{}, ErrNotHeldSo
	}
	if n.DryRun {
		return s.dryBegin(ctx, t, n)
	}
	held, err := s.core.ReserveFor(ctx, t.Actor(), s.transactionDemand(t, n), n.Idempotency)
	if err != nil {
		return Transaction{}, err
	}
	// The index is in another cell than the agent. A token that was refused before is checked first, because a revoked agent must not
	// write to the index again and again; of any other the script below finds out, and then the entry is dropped.
	if t.WasRefused() {
		if err := s.CheckToken(ctx, t); err != nil {
			held.Finish(err, false)
			return Transaction{}, err
		}
	}
	id := NewID(t.Agent)
	if err := s.indexTransaction(ctx, t.Organization, id); err != nil {
		held.Finish(err, false)
		return Transaction{}, err
	}
	r, err := s.begin(ctx, t, id, n)
	if err == nil {
		held.Demand.Expires = r.Time(3)
	}
	held.Finish(err, n.Idempotency.IsReplay())
	s.pruneAfterBegin(ctx, t, n.Session, id, err, n.Idempotency.IsReplay())
	if err != nil {
		return Transaction{}, t.Actor().ErrorFor(err)
	}
	begun, err := begunFrom(r, t, n)
	if err == nil && n.Idempotency.IsReplay() {
		return s.asBegun(ctx, t.Flow(), begun)
	}
	return begun, err
}

// begunFrom reads the reply to a begin.
func begunFrom(r *reply, t AccessToken, n NewTransaction) (Transaction, error) {
	begun := Transaction{
		ID: r.ID(0), Agent: t.Agent, Session: n.Session, Sequence: r.Number(1), Status: Pending,
		ActionType: n.ActionType, PreState: n.PreState, Hold: n.Value, Reversible: !n.Irreversible, Metadata: n.Metadata,
		HeldByGateway: n.HeldByGateway, Created: r.Time(2), Expires: r.Time(3),
	}
	if n.Session != uuid.Nil {
		begun.Held, begun.SpentOnExpiry, begun.SessionLeft = n.Value, n.SpentOnExpiry, kernel.MoneyAt(r, 4)
	}
	if r.Has(5) {
		begun.WouldRefuse = r.Text(5)
	}
	return begun, r.Err
}

// dryBegin is Begin for a dry run: it neither enters an index nor counts anything.
func (s *Store) dryBegin(ctx context.Context, t AccessToken, n NewTransaction) (Transaction, error) {
	held, err := s.core.ReserveIn(t.Flow(), s.transactionDemand(t, n))
	if err != nil {
		return Transaction{}, err
	}
	defer held.Finish(errDryRun, false)
	r, err := s.begin(ctx, t, NewID(t.Agent), n)
	if err != nil {
		return Transaction{}, t.Actor().ErrorFor(err)
	}
	would, err := begunFrom(r, t, n)
	would.ID = uuid.Nil
	return would, err
}

// asBegun returns the transaction with the JSON objects of the first request, as FirstMetadata does.
func (s *Store) asBegun(ctx context.Context, f flow, begun Transaction) (Transaction, error) {
	first, err := s.transactionFacts(ctx, f, begun.Agent, begun.ID)
	switch err {
	case nil:
		begun.PreState, begun.Metadata = first.PreState, first.Metadata
	case ErrUnknownTransaction: // it is no longer stored
	default:
		return Transaction{}, err
	}
	return begun, nil
}

func (s *Store) begin(ctx context.Context, t AccessToken, id uuid.UUID, n NewTransaction) (*reply, error) {
	act := t.Actor()
	if n.Session == uuid.Nil {
		keys := []string{s.keys.Agent(t.Agent), s.keys.Transaction(t.Agent, id),
			s.keys.AgentTransactions(t.Agent), s.keys.Events(t.Agent)}
		args := []any{t.Organization, t.Agent, act.Family, id,
			n.Lifetime.Milliseconds(), s.config.Retention.Milliseconds(), s.core.Audit(ctx, act), "hv", int64(n.Value)}
		args = append(args, n.storedFields()...)
		if n.DryRun {
			return s.dryRun(ctx, dryBegin, act, keys, args...)
		}
		return s.core.Perform(ctx, beginTransaction, act, n.Idempotency, keys, args...)
	}
	keys := []string{s.keys.Agent(t.Agent), s.keys.Session(t.Agent, n.Session), s.keys.Holds(t.Agent, n.Session),
		s.keys.Transaction(t.Agent, id), s.keys.SessionTransactions(t.Agent, n.Session),
		s.keys.AgentTransactions(t.Agent), s.keys.AgentSessions(t.Agent), s.keys.Events(t.Agent), s.keys.AgentHolds(t.Agent),
		s.keys.Leases(t.Agent, n.Session)}
	onExpiry, fields := "", n.storedFields()
	if n.SpentOnExpiry {
		onExpiry = "commit"
		fields = append(fields, "oe", onExpiry)
	}
	args := []any{t.Organization, t.Agent, act.Family, n.Session, id, int64(n.Value),
		n.Lifetime.Milliseconds(), s.config.Retention.Milliseconds(), s.core.Audit(ctx, act), onExpiry}
	args = append(args, fields...)
	return s.repeatForRoom(ctx, act, n.Session, n.Idempotency, func() (*reply, error) {
		if n.DryRun {
			return s.dryRun(ctx, drySessionBegin, act, keys, args...)
		}
		return s.core.Perform(ctx, beginSessionTransaction, act, n.Idempotency, keys, args...)
	})
}

// indexTransaction enters a transaction in its organization's index before it begins, so that every transaction is listed.
func (s *Store) indexTransaction(ctx context.Context, organization, id uuid.UUID) error {
	added, err := s.client.Call(ctx, flow{Owner: organization}, writes, "zadd", s.keys.OrganizationTransactions(organization), "0", string(id[:]))
	if _, isCount := added.(int64); err == nil && !isCount {
		return errReply
	}
	return kernel.NothingVisible(err)
}

// Commit commits a pending or expired (late) transaction of the calling agent. It charges the cost up to the session's
// limit; the rest is overage. Errors: ErrInvalidToken, ErrUnknownTransaction, *NotPendingError, ErrHeldByGateway; with an idempotency
// key ErrIdempotencyKeyReused.
func (s *Store) Commit(ctx context.Context, t AccessToken, id uuid.UUID, c Commit) (Transaction, error) {
	act := t.Actor()
	facts, err := s.transactionFacts(ctx, act.Flow, act.Agent, id)
	if err != nil && err != ErrUnknownTransaction { // as in actOnTransaction
		return Transaction{}, err
	}
	if err := s.heldTo(ctx, &t, facts.Session, ErrUnknownTransaction); err != nil {
		return Transaction{}, err
	}
	return s.commit(ctx, act, facts, c)
}

func (s *Store) commit(ctx context.Context, act kernel.Actor, facts Transaction, c Commit) (Transaction, error) {
	r, err := s.repeatWhileDue(ctx, act, facts.Session, func() (*reply, error) {
		return s.core.Perform(ctx, commitTransaction, act, c.Idempotency, s.transactionKeys(act, facts), act.Organization, act.Agent,
			act.Family, facts.ID, orEmpty((*int64)(c.Value)), c.PostState, s.settledRetention(c.Idempotency), s.core.Audit(ctx, act))
	})
	return s.countSettlement(act, c.Idempotency, c.PostState)(facts.withReply(act, r, err))
}

// Rollback rolls a transaction back: it releases the hold of a pending one, and refunds the charge of a committed one. Errors:
// ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownTransaction, *NotPendingError, ErrNotReversible; with an idempotency key
// ErrIdempotencyKeyReused; to an agent ErrHeldByGateway, and when it rolls back a commit ErrTokenLacksScope or a *ScopeError.
func (s *Store) Rollback(ctx context.Context, c Caller, id uuid.UUID, b Rollback) (_ Transaction, err error) {
	defer func() { s.core.FreeClaim(ctx, c, b.Idempotency, err) }()
	act, facts, err := s.actOnTransaction(ctx, c, id, b.Idempotency)
	if err != nil {
		return Transaction{}, err
	}
	return s.rollback(ctx, act, facts, b)
}

func (s *Store) rollback(ctx context.Context, act kernel.Actor, facts Transaction, b Rollback) (Transaction, error) {
	r, err := s.repeatWhileDue(ctx, act, facts.Session, func() (*reply, error) {
		return s.core.Perform(ctx, rollbackTransaction, act, b.Idempotency, s.transactionKeys(act, facts), act.Organization,
			act.Agent, act.Family, facts.ID, b.Reason, s.settledRetention(b.Idempotency), s.core.Audit(ctx, act),
			strings.Join(b.Scopes, " "))
	})
	return s.countSettlement(act, b.Idempotency, "")(facts.withReply(act, r, err))
}

// Transaction returns a transaction that the caller may see. Errors: ErrInvalidAPIKey or ErrInvalidToken,
// ErrUnknownTransaction.
func (s *Store) Transaction(ctx context.Context, c Caller, id uuid.UUID) (Transaction, error) {
	act, facts, err := s.actOnTransaction(ctx, c, id, nil)
	if err != nil {
		return Transaction{}, err
	}
	return s.readTransaction(ctx, act, facts)
}

func (s *Store) readTransaction(ctx context.Context, act kernel.Actor, facts Transaction) (Transaction, error) {
	keys := []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, facts.Session), s.keys.Transaction(act.Agent, facts.ID)}
	r, err := s.client.Run(ctx, act.Flow, getTransaction, keys, act.Organization, act.Agent, act.Family)
	return facts.withReply(act, r, err)
}

// settledRetention is how long a committed or rolled-back transaction is stored, in ms. It is at least the lifetime of an
// idempotency key's outcome, because a replay reads the transaction.
func (s *Store) settledRetention(idem *Idempotency) int64 {
	if idem != nil {
		return max(s.config.Retention, kernel.OutcomeLifetime).Milliseconds()
	}
	return s.config.Retention.Milliseconds()
}

func (s *Store) transactionKeys(act kernel.Actor, t Transaction) []string {
	return []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, t.Session), s.keys.Holds(act.Agent, t.Session),
		s.keys.Transaction(act.Agent, t.ID), s.keys.SessionTransactions(act.Agent, t.Session),
		s.keys.AgentTransactions(act.Agent), s.keys.Events(act.Agent), s.keys.Leases(act.Agent, t.Session)}
}

// actOnTransaction returns the actor for an operation on the transaction, and the transaction's immutable fields. The
// operation's script checks that the actor may see it.
func (s *Store) actOnTransaction(ctx context.Context, c Caller, id uuid.UUID, idem *Idempotency) (kernel.Actor, Transaction, error) {
	act, err := s.actByCell(ctx, c, id, idem)
	if err != nil {
		return kernel.Actor{}, Transaction{}, err
	}
	facts, err := s.transactionFacts(ctx, act.Flow, act.Agent, id)
	if c.Key != nil {
		act.Agent = facts.Agent
	} else if err == ErrUnknownTransaction { // the script says so, after it has checked the token
		err = nil
	}
	if err == nil {
		err = s.heldTo(ctx, c.Token, facts.Session, ErrUnknownTransaction)
	}
	return act, facts, err
}

// actByCell returns the actor for an operation on the transaction or lease with this id. An API key does not name its agent: until that is
// read the id, which has the same cell, stands for it.
func (s *Store) actByCell(ctx context.Context, c Caller, id uuid.UUID, idem *Idempotency) (kernel.Actor, error) {
	agent := id
	if c.Token != nil {
		agent = c.Token.Agent
	}
	idem.SetObject(id)
	return s.core.ActOnAgent(ctx, c, agent, idem)
}

// transactionFacts reads the immutable fields of a transaction. If it is unknown, it returns only its id and
// ErrUnknownTransaction.
func (s *Store) transactionFacts(ctx context.Context, f flow, agent, id uuid.UUID) (Transaction, error) {
	r, err := s.client.Fields(ctx, f, s.keys.Transaction(agent, id), transactionFacts...)
	if err != nil {
		return Transaction{}, err
	}
	if r.Values[factAgent] == nil {
		return Transaction{ID: id}, ErrUnknownTransaction
	}
	return readFacts(id, r)
}

// withReply returns the transaction with the state in a script's reply, or the script's refusal.
func (t Transaction) withReply(act kernel.Actor, r *reply, err error) (Transaction, error) {
	if err != nil {
		if err = act.ErrorFor(err); err == ErrUnknownSession {
			err = ErrUnknownTransaction
		}
		return Transaction{}, err
	}
	events, state := transactionEvents{now: r.Time(0), ended: r.Text(1), expires: r.Time(2)}, r.List(3)
	if r.Err != nil {
		return Transaction{}, r.Err
	}
	return t.with(state, events)
}
