package redisstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
)

// step is one thing done to the model and to the store. What it is follows from the type of what it asks for: NewSession,
// Charge, []BatchCharge, NewTransaction, NewHold, Commit, Rollback, NewLimits, Query (of transactions), one of those below, or
// time.Duration, which goes by.
type step struct {
	asks     any
	target   uuid.UUID // the session or transaction that it is about
	byAPIKey bool      // where an agent may ask too; else the agent asks with its token
	key      string    // idempotency key, "" for none
	request  int       // tells requests with keys apart; a repetition has that of what it repeats
}

type (
	readSessionStep     struct{}
	readTransactionStep struct{}
	endStep             struct{}
)

func (st step) String() string {
	asks, err := json.Marshal(st.asks)
	if err != nil {
		panic(err) // nothing that a step asks for can fail
	}
	return fmt.Sprintf("%T%s of %s by API key: %t, idempotency key %q of request %d",
		st.asks, asks, st.target, st.byAPIKey, st.key, st.request)
}

// outcome is what came of a step.
type outcome struct {
	value    any // what the store's method returns, nil with an error
	replayed bool
	err      error
}

// transactionPage is the first page of a list of transactions.
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

// is says whether two outcomes are the same.
func (o outcome) is(other outcome) bool {
	if t, ok := o.value.(Transaction); ok && o.err == nil { // of what there is most, without reflection
		return o.replayed == other.replayed && other.err == nil && other.value == any(t)
	}
	return reflect.DeepEqual(o, other)
}

// came is the outcome of a method that returns a value or an error. A value that comes with an error stays, for it to be
// seen: there should be none.
func came[T any](value T, err error) outcome {
	if err != nil && reflect.ValueOf(&value).Elem().IsZero() {
		return outcome{err: err}
	}
	return outcome{value: value, err: err}
}

// id is that of what was created.
func (o outcome) id() uuid.UUID {
	switch v := o.value.(type) {
	case Session:
		return v.ID
	case Transaction:
		return v.ID
	}
	return uuid.Nil
}

// idempotencyKey is one of the agent or, apart from those, of its organization.
type idempotencyKey struct {
	byAPIKey bool
	text     string
}

type firstOutcome struct {
	request int // which the key is tied to
	when    time.Time
	outcome outcome
}

// do does a step to the model; what it creates has the id.
func (m *model) do(st step, id uuid.UUID) outcome {
	if st.key == "" {
		return m.perform(st, id)
	}
	key := idempotencyKey{st.byAPIKey, st.key}
	first, known := m.outcomes[key]
	switch {
	case known && first.request != st.request:
		return outcome{err: ErrKeyReused}
	case known:
		repeated := first.outcome
		repeated.replayed = true
		return repeated
	}
	first = &firstOutcome{st.request, m.now, m.perform(st, id)}
	if isNoOutcome(first.outcome.err) {
		return first.outcome
	}
	m.outcomes = maps.Clone(m.outcomes) // which copies of the model share
	m.outcomes[key] = first
	return first.outcome
}

func (m *model) perform(st step, id uuid.UUID) outcome {
	switch asks := st.asks.(type) {
	case NewSession:
		return came(m.create(id, asks))
	case readSessionStep:
		return came(m.read(st.target))
	case Charge:
		return came(m.charge(st.target, asks))
	case []BatchCharge:
		return came(m.chargeBatch(asks), nil)
	case NewLimits:
		return came(m.changeLimits(st.target, asks))
	case endStep:
		return came(m.end(st.target))
	case NewTransaction:
		return came(m.begin(id, asks))
	case Commit:
		return came(m.commit(st.target, asks))
	case NewHold:
		return came(m.changeHold(st.target, asks))
	case Rollback:
		return came(m.rollback(st.target, asks, st.byAPIKey))
	case readTransactionStep:
		return came(m.readTransaction(st.target))
	case Query:
		return came(m.list(asks))
	case time.Duration:
		m.pass(asks)
		return outcome{}
	}
	panic(fmt.Sprintf("no step asks for %T", st.asks))
}

// follow does a step that the store has done, and returns what the store should have answered and what it did answer, in
// the model's time.
func (m *model) follow(st step, answer outcome) (want, got outcome) {
	asked := m.now
	want = m.do(st, answer.id())
	if want.replayed {
		asked = m.outcomes[idempotencyKey{st.byAPIKey, st.key}].when
	}
	got = answer.at(func(t time.Time) time.Time { return modelTime(t, m.start, asked) })
	return want.withoutRereadFacts(st), got.withoutRereadFacts(st)
}

// modelTime returns a time that the store told, in the model's time. In the store's time all happens at the start, for
// time passes there by moving what is stored into the past: how long a time lies before or after the start is how long
// it lies before or after the model's clock. All that happens in the model happens at full hours after the start, and
// all that expires does so half an hour past one; so up to a quarter of an hour that the test itself takes makes no
// difference.
func modelTime(t, start, now time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Add(t.Sub(start).Round(time.Hour / 2))
}

// withoutRereadFacts leaves out when a transaction was begun where the store reads that by itself, before it runs the
// operation's script or gives its first outcome again: the test may have moved time between the two.
func (o outcome) withoutRereadFacts(st step) outcome {
	if t, ok := o.value.(Transaction); ok {
		if _, begins := st.asks.(NewTransaction); !begins {
			t.Created = time.Time{}
			o.value = t
		}
	}
	return o
}

// at returns the outcome with all its times replaced.
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
		return v
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
		return &LimitError{e.Limit, usage}
	case *BelowUsageError:
		usage, _ := valueAt(e.Usage, when).(Usage)
		return &BelowUsageError{e.Limit, usage}
	}
	return err
}
