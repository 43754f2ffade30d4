package redisstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// step is one operation on the model and the store. The type of op determines it: NewSession, Charge, []BatchCharge,
// NewTransaction, NewHold, Commit, Rollback, NewLimits, Query (of transactions), one of the types below, or time.Duration
// for the passing of time.
type step struct {
	op       any
	target   uuid.UUID // session or transaction
	agent    uuid.UUID // whose token it is made with; uuid.Nil for that of the fixture
	byAPIKey bool      // with the API key instead of the agent's token
	gateway  bool      // by the metering gateway
	key      string    // idempotency key, "" for none
	request  int       // number of a request with a key; a repetition has the same number
}

type (
	readSessionStep     struct{}
	readTransactionStep struct{}
	endStep             struct{}
	suspendStep         struct{ Reason string }
	resumeStep          struct{}
)

func (st step) String() string {
	op, err := json.Marshal(st.op)
	if err != nil {
		panic(err) // every op can be encoded
	}
	return fmt.Sprintf("%T%s of %s by API key: %t, idempotency key %q of request %d",
		st.op, op, st.target, st.byAPIKey, st.key, st.request)
}

type outcome struct {
	value    any // what the store's method returns, nil with an error
	replayed bool
	err      error
}

type transactionPage struct {
	transactions []Transaction
	more         bool
}

func (o outcome) String() string {
	if charges, ok := o.value.([]ChargeOutcome); ok {
		o.value = ""
		for _, c := range charges {
			o.value = fmt.Sprint(o.value, outcome{value: c.Usage, err: c.Err})
		}
	}
	return fmt.Sprintf("{%+v %v replayed: %t}", o.value, o.err, o.replayed)
}

func (o outcome) is(other outcome) bool {
	if t, ok := o.value.(Transaction); ok && o.err == nil { // the most frequent type, compared without reflection
		return o.replayed == other.replayed && other.err == nil && other.value == any(t)
	}
	return reflect.DeepEqual(o, other)
}

// resultOf returns the outcome of a method. It keeps a value that comes with an error, so that the comparison finds it.
func resultOf[T any](value T, err error) outcome {
	if err != nil && reflect.ValueOf(&value).Elem().IsZero() {
		return outcome{err: err}
	}
	return outcome{value: value, err: err}
}

func (o outcome) id() uuid.UUID {
	switch v := o.value.(type) {
	case Session:
		return v.ID
	case Agent:
		return v.ID
	case SessionRequest:
		return v.ID
	case Transaction:
		return v.ID
	case Lease:
		if v.Settlement != nil && v.Settlement.Renewed != nil {
			return v.Settlement.Renewed.ID
		}
		return v.ID
	}
	return uuid.Nil
}

// idempotencyKey is a key of the agent or of its organization. These are separate.
type idempotencyKey struct {
	byAPIKey bool
	text     string
}

type firstOutcome struct {
	request int // that the key is bound to
	when    time.Time
	outcome outcome
}

// do executes a step in the model. A created object gets the id.
func (m *model) do(st step, id uuid.UUID) outcome {
	if st.key == "" {
		return m.perform(st, id)
	}
	key := idempotencyKey{st.byAPIKey, st.key}
	first, known := m.outcomes[key]
	switch {
	case known && first.request != st.request:
		return outcome{err: ErrIdempotencyKeyReused}
	case known:
		repeated := first.outcome
		repeated.replayed = true
		return repeated
	}
	first = &firstOutcome{st.request, m.now, m.perform(st, id)}
	if kernel.IsNoOutcome(first.outcome.err) {
		return first.outcome
	}
	m.outcomes = maps.Clone(m.outcomes) // copies of the model share it
	m.outcomes[key] = first
	return first.outcome
}

// orUnknown is what a caller reads of an object of the model, nil for none.
func orUnknown[T any](object *T, unknown error) (T, error) {
	if object == nil {
		return *new(T), unknown
	}
	return *object, nil
}

func (m *model) perform(st step, id uuid.UUID) outcome {
	if held, err := m.ofHolder(st); err != nil {
		return outcome{err: err}
	} else if st.gateway {
		return resultOf(m.settleHeld(held, st))
	}
	switch op := st.op.(type) {
	case NewSession:
		return resultOf(m.create(id, op))
	case readSessionStep:
		return resultOf(orUnknown(m.session(st.target), ErrUnknownSession))
	case Charge:
		if op.DryRun {
			m = m.clone()
		}
		return resultOf(m.charge(st.target, op))
	case []BatchCharge:
		return resultOf(m.chargeBatch(op), nil)
	case NewLimits:
		return resultOf(m.changeLimits(st.target, op))
	case suspendStep:
		return resultOf(m.suspend(st.target, op.Reason))
	case resumeStep:
		return resultOf(m.resume(st.target))
	case endStep:
		return resultOf(m.end(st.target))
	case NewTransaction:
		if op.DryRun {
			m = m.clone()
		}
		return resultOf(m.begin(id, op))
	case Commit:
		return resultOf(m.commit(st.target, op))
	case NewHold:
		return resultOf(m.changeHold(st.target, op))
	case Rollback:
		return resultOf(m.rollback(st.target, op, st.byAPIKey))
	case NewLease:
		return resultOf(m.grant(id, st.target, op))
	case NewSettlement:
		return resultOf(m.settle(st.target, id, op))
	case readLeaseStep:
		return resultOf(orUnknown(m.lease(st.target), ErrUnknownLease))
	case readTransactionStep:
		return resultOf(orUnknown(m.transaction(st.target), ErrUnknownTransaction))
	case Query:
		return resultOf(m.list(op))
	case time.Duration:
		m.pass(op)
		return outcome{}
	}
	panic(fmt.Sprintf("no step op for %T", st.op))
}

// follow executes a step that the store has executed, and returns the expected and the actual answer of the store, in the
// model's time.
func (m *model) follow(st step, answer outcome) (want, got outcome) {
	asked := m.now
	want = m.do(st, answer.id())
	if want.replayed {
		asked = m.outcomes[idempotencyKey{st.byAPIKey, st.key}].when
	}
	got = answer.at(func(t time.Time) time.Time { return modelTime(t, m.start, asked) })
	return want.withoutRereadFacts(st), got.withoutRereadFacts(st)
}

// modelTime converts a time of the store to the model's time. For the store everything happens at the start, because the
// test lets time pass by moving stored times into the past. So a time's distance from the start is its distance from the
// model's clock. In the model everything happens at full hours after the start, sessions and transactions expire half an
// hour past one, and leases a quarter, a half or three quarters, so up to 7 minutes for the test itself make no difference.
func modelTime(t, start, now time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Add(t.Sub(start).Round(time.Hour / 4))
}

// withoutRereadFacts removes the begin time of a transaction where the store reads it separately, before the operation's
// script or the replay of its first outcome, because the test may have moved time between the two; and that a settlement is a repetition,
// which the model does not say.
func (o outcome) withoutRereadFacts(st step) outcome {
	if l, ok := o.value.(Lease); ok && l.Settlement != nil {
		settlement := *l.Settlement
		settlement.Repeated = false
		l.Settlement = &settlement
		o.value = l
	}
	if t, ok := o.value.(Transaction); ok {
		if _, begins := st.op.(NewTransaction); !begins {
			t.Created = time.Time{}
			o.value = t
		}
	}
	return o
}

func (o outcome) at(when func(time.Time) time.Time) outcome {
	o.value, o.err = valueAt(o.value, when), errorAt(o.err, when)
	return o
}

func valueAt(value any, when func(time.Time) time.Time) any {
	switch v := value.(type) {
	case time.Time:
		return when(v)
	case Usage:
		v.Expires = when(v.Expires)
		return v
	case Session:
		v.Created, v.Expires, v.Ended = when(v.Created), when(v.Expires), when(v.Ended)
		v.Suspended = when(v.Suspended)
		return v
	case Lease:
		return leaseAt(v, when)
	case Transaction:
		return transactionAt(v, when)
	case transactionPage:
		v.transactions = slices.Clone(v.transactions)
		for i, t := range v.transactions {
			v.transactions[i] = transactionAt(t, when)
		}
		return v
	case []ChargeOutcome:
		v = slices.Clone(v)
		for i := range v {
			v[i].Usage.Expires, v[i].Err = when(v[i].Usage.Expires), errorAt(v[i].Err, when)
		}
		return v
	}
	return value
}

func transactionAt(t Transaction, when func(time.Time) time.Time) Transaction {
	t.Created, t.Expires, t.Committed, t.RolledBack = when(t.Created), when(t.Expires), when(t.Committed), when(t.RolledBack)
	return t
}

func errorAt(err error, when func(time.Time) time.Time) error {
	switch e := err.(type) {
	case *LimitError:
		usage, _ := valueAt(e.Usage, when).(Usage)
		return &LimitError{Limit: e.Limit, Usage: usage}
	case *SessionSuspendedError:
		return &SessionSuspendedError{Since: when(e.Since)}
	case *BelowUsageError:
		usage, _ := valueAt(e.Usage, when).(Usage)
		return &BelowUsageError{e.Limit, usage}
	}
	return err
}
