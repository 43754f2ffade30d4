package redisstore

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// The immutable fields of a transaction by their index in the read before its scripts run, and its hold, which scripts also
// return because it may change in between.
const (
	factAgent = iota
	factSession
	factSequence
	factActionType
	factHold
	factIrreversible
	factCreated
	factOnExpiry
	factHeldByGateway
	factMetadata
	factPreState
)

// transactionFacts are the fields of a transaction's hash in this order.
var transactionFacts = []string{
	factAgent: "a", factSession: "s", factSequence: "q", factActionType: "ty", factHold: "hv", factIrreversible: "ir",
	factCreated: "b", factOnExpiry: "oe", factHeldByGateway: "hb", factMetadata: "md", factPreState: "ps",
}

// listedFacts omits the fields that may be large.
var listedFacts = transactionFacts[:factMetadata]

// readFacts reads a transaction from its transactionFacts or listedFacts.
func readFacts(id uuid.UUID, r *reply) (Transaction, error) {
	t := Transaction{
		ID: id, Agent: r.ID(factAgent), Sequence: r.NumberOr0(factSequence), ActionType: r.Text(factActionType),
		Hold: money.MicroUSD(r.NumberOr0(factHold)), Reversible: r.Optional(factIrreversible) == "", Created: r.Time(factCreated),
		SpentOnExpiry: r.Optional(factOnExpiry) != "", HeldByGateway: r.Optional(factHeldByGateway) != "",
	}
	if r.Optional(factSession) != "" {
		t.Session = r.ID(factSession)
	}
	if len(r.Values) > factPreState {
		t.Metadata, t.PreState = r.Optional(factMetadata), r.Text(factPreState)
	}
	return t, r.Err
}

// The mutable fields of a transaction by their index in the reply of budgets/block/transaction_state.lua.
const (
	stateStatus = iota
	stateValue
	stateOverage
	stateCommitted
	stateRolledBack
	stateReason
	statePostState
	stateHold
)

// Lists read these in place of the last two, because a post-state may be large.
const (
	listedHold = stateReason + 1 + iota
	listedExpires
)

// listedState are the fields of a transaction's hash as lists read them.
var listedState = []string{
	stateStatus: "st", stateValue: "v", stateOverage: "ov", stateCommitted: "cm", stateRolledBack: "rb", stateReason: "re",
	listedHold: "hv", listedExpires: "x",
}

// with returns the transaction with its mutable fields. The last fields may be missing: lists omit them.
func (t Transaction) with(r *reply, events transactionEvents) (Transaction, error) {
	stored := Status(r.Text(stateStatus))
	events.spent = t.SpentOnExpiry
	t.Status = transactionStatus(stored, events)
	t.Expires = events.expires
	t.Value, t.Overage = money.MicroUSD(r.NumberOr0(stateValue)), money.MicroUSD(r.NumberOr0(stateOverage))
	t.Committed, t.RolledBack = r.TimeOrZero(stateCommitted), r.TimeOrZero(stateRolledBack)
	t.Reason = r.Optional(stateReason)
	if len(r.Values) > statePostState {
		t.PostState = r.Optional(statePostState)
	}
	if len(r.Values) > stateHold {
		t.Hold = money.MicroUSD(r.NumberOr0(stateHold))
	}
	t.SettledByExpiry = t.Status == Committed && stored == Pending
	if t.SettledByExpiry {
		t.Value, t.Committed = t.Hold, t.Expires
	}
	byExpiry := t.SpentOnExpiry && t.Committed.Equal(t.Expires) // also if that was rolled back since
	t.Late = !t.Committed.IsZero() && !t.Committed.Before(t.Expires) && !byExpiry
	t.Held = 0
	if t.Status == Pending && t.Session != uuid.Nil {
		t.Held = t.Hold
	}
	if t.Status == RolledBack && t.RolledBack.IsZero() {
		t.RolledBack = events.sessionEnd()
	}
	return t, r.Err
}

// withListed returns the transaction with its listedState.
func (t Transaction) withListed(r *reply, ended string, now time.Time) (Transaction, error) {
	hold, expires := money.MicroUSD(r.NumberOr0(listedHold)), r.Time(listedExpires)
	if r.Err != nil {
		return Transaction{}, r.Err
	}
	t.Hold = hold
	return t.with(&reply{Values: r.Values[:listedHold]}, transactionEvents{now: now, ended: ended, expires: expires})
}

// readListed reads a listed transaction from its listedFacts and listedState, as if its session had not ended.
func readListed(id uuid.UUID, r *reply, now time.Time) (*Transaction, error) {
	n := len(listedFacts)
	t, err := readFacts(id, &reply{Values: r.Values[:n]})
	if err != nil {
		return nil, err
	}
	t, err = t.withListed(&reply{Values: r.Values[n:]}, "", now)
	return &t, err
}

// transactionEvents determine the status of a transaction that is stored as pending.
type transactionEvents struct {
	now     time.Time
	ended   string // when its session ended, as budgets/include/states.lua encodes it
	expires time.Time
	spent   bool // its hold is spent when it expires
}

// sessionGone stands for the end of a session that Redis no longer has. A session that expires is stored as long as its
// transactions, and one that ends is stored longer than the transactions that expired before. So the session ended while
// this transaction was pending.
const sessionGone = "gone"

// transactionStatus is the only rule for a transaction's status. It is the stored status, except that a pending transaction
// is expired after its expiry, and rolled back if its session ended before that; one that is spent on expiry is committed then.
func transactionStatus(stored Status, e transactionEvents) Status {
	switch {
	case stored != Pending:
		return stored
	case e.spent && !e.now.Before(e.expires):
		return Committed
	case e.spent:
		return Pending
	case e.ended == "" && e.now.Before(e.expires):
		return Pending
	case e.ended == "" || !e.sessionEnd().Before(e.expires):
		return Expired
	default:
		return RolledBack
	}
}

// sessionEnd returns when the session ended, or the zero time if that is unknown.
func (e transactionEvents) sessionEnd() time.Time {
	if ms, err := strconv.ParseInt(e.ended, 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

func (s *Store) transactionDemand(t AccessToken, n NewTransaction) kernel.Demand {
	d := kernel.Demand{
		Organization: t.Organization, Agent: t.Agent, Resource: kernel.PendingHeld, Lifetime: n.Lifetime, Events: kernel.EventSize,
		Bytes: kernel.BeginSize + kernel.Texts(kernel.BeginTableSize, n.PreState, n.Metadata, n.ActionType), Retained: n.Lifetime + s.config.Retention,
	}
	if n.Session != uuid.Nil {
		d.Bytes += kernel.InSessionSize + int64(len(n.ActionType)) // as it is, and by action type
	}
	return d
}

// countSettlement counts that a transaction is no longer pending, and the memory of its post-state.
func (s *Store) countSettlement(act kernel.Actor, idem *Idempotency, postState string) func(Transaction, error) (Transaction, error) {
	return func(t Transaction, err error) (Transaction, error) {
		if err != nil || idem.IsReplay() {
			return t, err
		}
		wasPending := t.Committed.IsZero() || t.RolledBack.IsZero()
		at := t.Committed
		if t.RolledBack.After(at) {
			at = t.RolledBack
		}
		s.core.Usage.Note(act.Organization, func(c *kernel.Changes, unsent *kernel.Quantities) {
			c.EventBytes += kernel.EventSize
			if remaining := t.Expires.Sub(at); wasPending && remaining > 0 {
				c.Expire(kernel.PendingUntil(t.Expires.Sub(t.Created), t.Expires), -1)
				unsent[kernel.PendingHeld]--
			}
			if postState != "" {
				bytes := kernel.Texts(0, postState)
				retention := s.config.Retention
				c.Expire(kernel.ExpiryOf('b', retention, retention), bytes)
				unsent[kernel.BytesHeld] += bytes
			}
		})
		return t, nil
	}
}
