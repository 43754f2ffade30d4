package redisstore

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// model is the specification of an agent's sessions, transactions and leases in the simplest form: one goroutine, no store, a clock
// that the test moves. It applies expiry exactly when it is due, and derives nothing on reads. It uses the store's types,
// so that answers can be compared directly. The store chooses ids, and the model receives them.
type model struct {
	start        time.Time // initial time of the clock
	now          time.Time
	agent        uuid.UUID
	scopes       []string // of the agent
	sessions     []Session
	transactions []*Transaction // in the order of their begins
	leases       []*Lease       // in the order of their grants
	outcomes     map[idempotencyKey]*firstOutcome
	typed        map[typeOf]kernel.UsedAmounts
	noted        map[uuid.UUID]noted
}

func (m *model) session(id uuid.UUID) *Session {
	for i := range m.sessions {
		if m.sessions[i].ID == id {
			return &m.sessions[i]
		}
	}
	return nil
}

func (m *model) transaction(id uuid.UUID) *Transaction {
	for _, t := range m.transactions {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// changed replaces an object by a copy, and returns the copy to change, because copies of a model share transactions and leases.
func changed[T any](all []*T, object *T) *T {
	copied := *object
	all[slices.Index(all, object)] = &copied
	return &copied
}

// pass moves the clock: sessions expire, and so do pending transactions, which releases their holds.
func (m *model) pass(d time.Duration) {
	m.now = m.now.Add(d)
	for i := range m.sessions {
		if s := &m.sessions[i]; s.Status == Active && !m.now.Before(s.Expires) {
			s.Status = Expired
		}
	}
	for _, t := range m.transactions {
		if t.Status == Pending && !m.now.Before(t.Expires) {
			m.expire(t)
		}
	}
	m.expireLeases()
}

// expire releases a transaction's hold, or spends it.
func (m *model) expire(t *Transaction) {
	if !t.SpentOnExpiry {
		m.finish(t, Expired)
		return
	}
	t = m.finish(t, Committed)
	t.Value, t.Committed, t.SettledByExpiry = t.Hold, t.Expires, true
	chargeValue(m.session(t.Session), t.Value)
	m.countType(t.Session, t.ActionType, 0, t.Value)
}

// finish gives a transaction a final status, in which it holds nothing.
func (m *model) finish(t *Transaction, status Status) *Transaction {
	t = changed(m.transactions, t)
	if s := m.session(t.Session); s != nil {
		s.ValueHeld -= t.Held
	}
	t.Status, t.Held = status, 0
	return t
}

func (m *model) create(id uuid.UUID, n NewSession) (Session, error) {
	scopes := m.scopes
	if n.Scopes != nil {
		scopes = n.Scopes
	}
	for _, scope := range scopes {
		if !slices.Contains(m.scopes, scope) {
			return Session{}, &ScopeError{Scope: scope}
		}
	}
	s := Session{
		ID: id, Agent: m.agent, Status: Active, Scopes: scopes, Metadata: n.Metadata, Created: m.now, MaxCommitted: n.MaxCommitted,
		MaxLease: n.MaxLease, Thresholds: n.Thresholds,
		Usage: Usage{MaxActions: n.MaxActions, MaxValue: n.MaxValue, Expires: m.now.Add(n.Lifetime)},
	}
	withhold(&s)
	m.sessions = append(m.sessions, s)
	return s, nil
}

// active returns a session that can be used.
func (m *model) active(id uuid.UUID) (*Session, error) {
	s := m.session(id)
	if s == nil {
		return nil, ErrUnknownSession
	}
	if s.Status != Active {
		return nil, &NotActiveError{s.Status}
	}
	return s, nil
}

// usable returns a session in which something new may be done.
func (m *model) usable(id uuid.UUID) (*Session, error) {
	s, err := m.active(id)
	if err == nil && !s.Suspended.IsZero() {
		return nil, &SessionSuspendedError{Since: s.Suspended}
	}
	return s, err
}

// suspend keeps the first time and reason. It changes nothing else.
func (m *model) suspend(id uuid.UUID, reason string) (Session, error) {
	s, err := m.active(id)
	if err != nil {
		return Session{}, err
	}
	if s.Suspended.IsZero() {
		s.Suspended, s.SuspensionReason = m.now, reason
	}
	return *s, nil
}

func (m *model) resume(id uuid.UUID) (Session, error) {
	s, err := m.active(id)
	if err != nil {
		return Session{}, err
	}
	s.Suspended, s.SuspensionReason = time.Time{}, ""
	return *s, nil
}

// withhold computes the part of a session's value limit that max_committed excludes, after one of both has changed.
func withhold(s *Session) {
	if s.MaxCommitted != nil {
		leaves := *s.MaxCommitted - (s.ValueCommitted - s.ValueUsed)
		s.Withheld = max(s.MaxValue-leaves, 0)
	}
}

func chargeValue(s *Session, value money.MicroUSD) {
	s.ValueUsed += value
	s.ValueCommitted += value
}

// fits returns nil if the session's limits allow the charge.
func fits(s *Session, actions int64, value money.MicroUSD) error {
	switch {
	case s.ActionCount+actions > s.MaxActions:
		return &LimitError{Limit: "max_actions", Usage: s.Usage}
	case s.ValueUsed+s.ValueHeld+value > s.MaxValue:
		return &LimitError{Limit: valueLimit(s), Usage: s.Usage}
	case s.MaxCommitted != nil && s.ValueCommitted+s.ValueHeld+value > *s.MaxCommitted:
		return &LimitError{Limit: "max_committed_usd", Usage: s.Usage}
	}
	return nil
}

// valueLimit names the limit that allows the least.
func valueLimit(s *Session) string {
	if s.Withheld > 0 {
		return "max_committed_usd"
	}
	return "max_value_usd"
}

func (m *model) charge(id uuid.UUID, c Charge) (Usage, error) {
	s, err := m.usable(id)
	if err != nil {
		return Usage{}, err
	}
	if c.Scope != "" && !slices.Contains(s.Scopes, c.Scope) {
		return Usage{}, &ScopeError{Scope: c.Scope}
	}
	if err := fits(s, c.Count, c.Value); err != nil {
		return Usage{}, err
	}
	s.ActionCount += c.Count
	chargeValue(s, c.Value)
	m.countType(id, c.ActionType, c.Count, c.Value)
	m.note(id)
	return s.Usage, nil
}

// chargeBatch charges one after the other. A refusal does not affect the others.
func (m *model) chargeBatch(charges []BatchCharge) []ChargeOutcome {
	outcomes := make([]ChargeOutcome, len(charges))
	for i, c := range charges {
		outcomes[i].Usage, outcomes[i].Err = m.charge(c.Session, c.Charge)
	}
	return outcomes
}

func (m *model) changeLimits(id uuid.UUID, n NewLimits) (Session, error) {
	s, err := m.active(id)
	if err != nil {
		return Session{}, err
	}
	if n.AddActions != nil {
		n.MaxActions = new(s.MaxActions + *n.AddActions)
	}
	if n.AddValue != nil {
		n.MaxValue = new(s.MaxValue + *n.AddValue)
	}
	if n.MaxActions != nil && *n.MaxActions > MostActions {
		return Session{}, &AboveBoundsError{Limit: "max_actions"}
	}
	if n.MaxValue != nil && *n.MaxValue > MostValue {
		return Session{}, &AboveBoundsError{Limit: "max_value_usd"}
	}
	if n.MaxActions != nil && *n.MaxActions < s.ActionCount {
		return Session{}, &BelowUsageError{"max_actions", s.Usage}
	}
	if n.MaxValue != nil && *n.MaxValue < s.ValueUsed+s.ValueHeld {
		return Session{}, &BelowUsageError{"max_value_usd", s.Usage}
	}
	if n.MaxActions != nil {
		s.MaxActions = *n.MaxActions
	}
	if n.MaxValue != nil {
		s.MaxValue = *n.MaxValue
		withhold(s)
	}
	if n.Lifetime != nil {
		s.Expires = m.now.Add(*n.Lifetime)
	}
	if n.MaxLease != nil {
		s.MaxLease = *n.MaxLease
	}
	m.forgetTold(s, n)
	if n.Thresholds != nil {
		s.Thresholds = *n.Thresholds
	}
	m.note(id)
	return *s, nil
}

// end rolls back pending transactions. Ending again returns the first answer.
func (m *model) end(id uuid.UUID) (time.Time, error) {
	if s := m.session(id); s != nil && s.Status == Completed {
		return s.Ended, nil
	}
	s, err := m.active(id)
	if err != nil {
		return time.Time{}, err
	}
	for _, t := range m.transactions {
		if t.Session == id && t.Status == Pending && !t.SpentOnExpiry {
			m.finish(t, RolledBack).RolledBack = m.now
		}
	}
	s.Status, s.Ended = Completed, m.now
	return s.Ended, nil
}

func (m *model) begin(id uuid.UUID, n NewTransaction) (Transaction, error) {
	t := Transaction{
		ID: id, Agent: m.agent, Session: n.Session, Status: Pending, ActionType: n.ActionType, PreState: n.PreState,
		Hold: n.Value, Reversible: !n.Irreversible, Metadata: n.Metadata,
		HeldByGateway: n.HeldByGateway, Created: m.now, Expires: m.now.Add(n.Lifetime),
	}
	if n.Session != uuid.Nil {
		s, err := m.usable(n.Session)
		if err != nil {
			return Transaction{}, err
		}
		if err := fits(s, 1, n.Value); err != nil {
			return Transaction{}, err
		}
		s.ActionCount++
		m.countType(n.Session, n.ActionType, 1, 0)
		s.ValueHeld += n.Value
		t.Held, t.Sequence, t.SpentOnExpiry = n.Value, m.begun(n.Session)+1, n.SpentOnExpiry
		m.note(n.Session)
	}
	m.transactions = append(m.transactions, &t)
	begun := t
	if s := m.session(n.Session); s != nil {
		begun.SessionLeft = s.RemainingValue()
	}
	return begun, nil
}

// ofHolder refuses a step on a transaction that another settles. Of the gateway's steps it returns the transaction.
func (m *model) ofHolder(st step) (*Transaction, error) {
	t := m.transaction(st.target)
	switch st.op.(type) {
	case Commit, NewHold, Rollback:
		switch held := t != nil && t.HeldByGateway; {
		case st.gateway && !held:
			return nil, ErrUnknownTransaction
		case held && !st.gateway && !st.byAPIKey:
			return nil, ErrHeldByGateway
		}
	}
	return t, nil
}

// settleHeld is a step of the gateway. It settles once, and gives a pending hold more time whatever became of the session.
func (m *model) settleHeld(t *Transaction, st step) (Transaction, error) {
	hold, renews := st.op.(NewHold)
	switch {
	case renews && t.Status != Pending:
		return Transaction{}, &NotPendingError{t.Status}
	case renews:
		t = changed(m.transactions, t)
		t.Expires = m.now.Add(*hold.Lifetime)
		return *t, nil
	case t.Status != Pending && !t.SettledByExpiry:
		again := *t
		again.Repeated = true
		return again, nil
	}
	switch op := st.op.(type) {
	case Commit:
		return m.commit(t.ID, op)
	case Rollback:
		if t.SettledByExpiry { // nothing was sent, so what was spent is corrected to nothing
			return m.commit(t.ID, Commit{Value: new(money.MicroUSD)})
		}
		return m.rollback(t.ID, op, true)
	}
	panic("the gateway does nothing else")
}

func (m *model) begun(session uuid.UUID) int64 {
	count := int64(0)
	for _, t := range m.transactions {
		if t.Session == session {
			count++
		}
	}
	return count
}

// changeHold changes the hold and the expiry of a pending transaction if its session's limits allow that.
func (m *model) changeHold(id uuid.UUID, n NewHold) (Transaction, error) {
	t := m.transaction(id)
	switch {
	case t == nil:
		return Transaction{}, ErrUnknownTransaction
	case t.Status != Pending:
		return Transaction{}, &NotPendingError{t.Status}
	}
	value := t.Hold
	if n.Value != nil {
		value = *n.Value
	}
	if t.Session != uuid.Nil {
		s, err := m.usable(t.Session)
		if err != nil {
			return Transaction{}, err
		}
		if err := fits(s, 0, value-t.Held); err != nil {
			return Transaction{}, err
		}
		s.ValueHeld += value - t.Held
		m.note(t.Session)
	}
	t = changed(m.transactions, t)
	if t.Hold = value; t.Session != uuid.Nil {
		t.Held = value
	}
	if n.Lifetime != nil {
		t.Expires = m.now.Add(*n.Lifetime)
	}
	return *t, nil
}

// commit charges the cost of the transaction. The part beyond the limit is its overage. After the end of the session at
// most the held value is charged. An expired transaction is committed late, by the same rule.
func (m *model) commit(id uuid.UUID, c Commit) (Transaction, error) {
	t := m.transaction(id)
	if t == nil {
		return Transaction{}, ErrUnknownTransaction
	}
	if t.Status != Pending && t.Status != Expired && !t.SettledByExpiry {
		return Transaction{}, &NotPendingError{t.Status}
	}
	cost, late := t.Hold, t.Status != Pending
	if c.Value != nil {
		cost = *c.Value
	}
	if t.SettledByExpiry { // what was spent is corrected
		chargeValue(m.session(t.Session), -t.Value)
		m.countType(t.Session, t.ActionType, 0, -t.Value)
	}
	t = m.finish(t, Committed)
	t.SettledByExpiry = false
	t.Value, t.Committed, t.PostState, t.Late = cost, m.now, c.PostState, late
	if s := m.session(t.Session); s != nil {
		t.Value = min(cost, s.RemainingValue())
		if s.Status != Active {
			t.Value = min(t.Value, t.Hold)
		}
		t.Overage = cost - t.Value
		chargeValue(s, t.Value)
		m.countType(t.Session, t.ActionType, 0, t.Value)
		s.ValueOverage += t.Overage
		m.note(t.Session)
	}
	return *t, nil
}

// rollback returns value and overage, but not the action, and does not lower the committed value. The transaction keeps the
// amounts that it was charged. An agent may undo a commit only if its token and the session hold a scope for it.
func (m *model) rollback(id uuid.UUID, b Rollback, byAPIKey bool) (Transaction, error) {
	t := m.transaction(id)
	switch {
	case t == nil:
		return Transaction{}, ErrUnknownTransaction
	case t.Status == Committed && !byAPIKey && len(b.Scopes) == 0:
		return Transaction{}, ErrTokenLacksScope
	case t.Status == Committed && !byAPIKey && !m.holdsOne(t.Session, b.Scopes):
		return Transaction{}, &ScopeError{Scope: strings.Join(b.Scopes, " ")}
	case t.Status == Committed && !t.Reversible:
		return Transaction{}, ErrNotReversible
	case t.Status == Committed:
		if s := m.session(t.Session); s != nil {
			s.ValueUsed -= t.Value
			m.countType(t.Session, t.ActionType, 0, -t.Value)
			s.ValueOverage -= t.Overage
			withhold(s)
		}
	case t.Status != Pending:
		return Transaction{}, &NotPendingError{t.Status}
	}
	t = m.finish(t, RolledBack)
	t.RolledBack, t.Reason, t.SettledByExpiry = m.now, b.Reason, false
	return *t, nil
}

// holdsOne says whether the session, or without one the agent, holds one of the scopes.
func (m *model) holdsOne(session uuid.UUID, scopes []string) bool {
	held := m.scopes
	if s := m.session(session); s != nil {
		held = s.Scopes
	}
	return slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(held, scope) })
}

// list returns the newest first, without their large fields.
func (m *model) list(q Query) (transactionPage, error) {
	if q.Session != uuid.Nil && m.session(q.Session) == nil {
		return transactionPage{}, ErrUnknownSession
	}
	var page transactionPage
	for _, t := range slices.Backward(m.transactions) {
		if q.Session != uuid.Nil && t.Session != q.Session || q.Status != "" && t.Status != q.Status {
			continue
		}
		if len(page.transactions) == q.Limit {
			page.more = true
			break
		}
		short := *t
		short.PreState, short.PostState, short.Metadata = "", "", ""
		page.transactions = append(page.transactions, short)
	}
	return page, nil
}
