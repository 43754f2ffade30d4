package redisstore

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// model is what an agent's sessions and transactions are promised to do, in the plainest way: one thread, no store, a clock
// that moves when told to. What time brings is done to all of them right when it is due; nothing is derived when it is
// read. It speaks the store's types, so that what both answer can be compared as it is. Ids are the store's to choose,
// so the model is told them.
type model struct {
	start        time.Time // what the clock began with
	now          time.Time
	agent        uuid.UUID
	scopes       []string // of the agent
	sessions     []Session
	transactions []*Transaction // in the order in which they were begun
	outcomes     map[idempotencyKey]*firstOutcome
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

// change puts a copy in the transaction's place and returns it, to be changed: copies of a model share what stays.
func (m *model) change(t *Transaction) *Transaction {
	changed := *t
	m.transactions[slices.Index(m.transactions, t)] = &changed
	return &changed
}

// pass lets time go by: sessions expire, and transactions that nobody has settled, which releases what they hold.
func (m *model) pass(d time.Duration) {
	m.now = m.now.Add(d)
	for i := range m.sessions {
		if s := &m.sessions[i]; s.Status == Active && !m.now.Before(s.Expires) {
			s.Status = Expired
		}
	}
	for _, t := range m.transactions {
		if t.Status == Pending && !m.now.Before(t.Expires) {
			m.settle(t, Expired)
		}
	}
}

// settle gives a transaction another status, in which it holds nothing.
func (m *model) settle(t *Transaction, status Status) *Transaction {
	t = m.change(t)
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
			return Session{}, &ScopeError{scope}
		}
	}
	s := Session{
		ID: id, Agent: m.agent, Status: Active, Scopes: scopes, Metadata: n.Metadata, Created: m.now,
		Usage: Usage{MaxActions: n.MaxActions, MaxValue: n.MaxValue, Expires: m.now.Add(n.Lifetime)},
	}
	m.sessions = append(m.sessions, s)
	return s, nil
}

func (m *model) read(id uuid.UUID) (Session, error) {
	s := m.session(id)
	if s == nil {
		return Session{}, ErrUnknownSession
	}
	return *s, nil
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

// fits returns nil if the session has room for so much more.
func fits(s *Session, actions int64, value money.MicroUSD) error {
	switch {
	case s.ActionCount+actions > s.MaxActions:
		return &LimitError{"max_actions", s.Usage}
	case s.ValueUsed+s.ValueHeld+value > s.MaxValue:
		return &LimitError{"max_value_usd", s.Usage}
	}
	return nil
}

func (m *model) charge(id uuid.UUID, c Charge) (Usage, error) {
	s, err := m.active(id)
	if err != nil {
		return Usage{}, err
	}
	if c.Scope != "" && !slices.Contains(s.Scopes, c.Scope) {
		return Usage{}, &ScopeError{c.Scope}
	}
	if err := fits(s, c.Count, c.Value); err != nil {
		return Usage{}, err
	}
	s.ActionCount += c.Count
	s.ValueUsed += c.Value
	return s.Usage, nil
}

// chargeBatch is nothing but charges one after the other: what is refused does not hinder the rest.
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
	}
	if n.Lifetime != nil {
		s.Expires = m.now.Add(*n.Lifetime)
	}
	return *s, nil
}

// end rolls what is pending back. Ending again gives the first answer.
func (m *model) end(id uuid.UUID) (time.Time, error) {
	if s := m.session(id); s != nil && s.Status == Completed {
		return s.Ended, nil
	}
	s, err := m.active(id)
	if err != nil {
		return time.Time{}, err
	}
	for _, t := range m.transactions {
		if t.Session == id && t.Status == Pending {
			m.settle(t, RolledBack).RolledBack = m.now
		}
	}
	s.Status, s.Ended = Completed, m.now
	return s.Ended, nil
}

func (m *model) begin(id uuid.UUID, n NewTransaction) (Transaction, error) {
	t := Transaction{
		ID: id, Agent: m.agent, Session: n.Session, Status: Pending, ActionType: n.ActionType, PreState: n.PreState,
		Hold: n.Value, Reversible: !n.Irreversible, Metadata: n.Metadata,
		Created: m.now, Expires: m.now.Add(n.Lifetime),
	}
	if n.Session != uuid.Nil {
		s, err := m.active(n.Session)
		if err != nil {
			return Transaction{}, err
		}
		if err := fits(s, 1, n.Value); err != nil {
			return Transaction{}, err
		}
		s.ActionCount++
		s.ValueHeld += n.Value
		t.Held, t.Sequence = n.Value, m.begun(n.Session)+1
	}
	m.transactions = append(m.transactions, &t)
	return t, nil
}

// begun counts the transactions of a session.
func (m *model) begun(session uuid.UUID) int64 {
	count := int64(0)
	for _, t := range m.transactions {
		if t.Session == session {
			count++
		}
	}
	return count
}

// commit charges what the transaction cost; what the limit has no room for is its overage. A session that has expired
// spends what was held, and no more.
func (m *model) commit(id uuid.UUID, c Commit) (Transaction, error) {
	t := m.transaction(id)
	if t == nil {
		return Transaction{}, ErrUnknownTransaction
	}
	if t.Status != Pending {
		return Transaction{}, &NotPendingError{t.Status}
	}
	cost := t.Hold
	if c.Value != nil {
		cost = *c.Value
	}
	t = m.settle(t, Committed)
	t.Value, t.Committed, t.PostState = cost, m.now, c.PostState
	if s := m.session(t.Session); s != nil {
		t.Value = min(cost, s.MaxValue-s.ValueUsed-s.ValueHeld)
		if s.Status == Expired {
			t.Value = min(t.Value, t.Hold)
		}
		t.Overage = cost - t.Value
		s.ValueUsed += t.Value
		s.ValueOverage += t.Overage
	}
	return *t, nil
}

// rollback gives value and overage back, never the action. The transaction goes on telling what it had been charged.
func (m *model) rollback(id uuid.UUID, b Rollback) (Transaction, error) {
	t := m.transaction(id)
	switch {
	case t == nil:
		return Transaction{}, ErrUnknownTransaction
	case t.Status == Committed && !t.Reversible:
		return Transaction{}, ErrNotReversible
	case t.Status == Committed:
		if s := m.session(t.Session); s != nil {
			s.ValueUsed -= t.Value
			s.ValueOverage -= t.Overage
		}
	case t.Status != Pending:
		return Transaction{}, &NotPendingError{t.Status}
	}
	t = m.settle(t, RolledBack)
	t.RolledBack, t.Reason = m.now, b.Reason
	return *t, nil
}

func (m *model) readTransaction(id uuid.UUID) (Transaction, error) {
	t := m.transaction(id)
	if t == nil {
		return Transaction{}, ErrUnknownTransaction
	}
	return *t, nil
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
