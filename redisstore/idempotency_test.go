package redisstore

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// keyedOperation is an operation that takes an idempotency key, on a tenant of its own.
type keyedOperation struct {
	name    string
	script  kernel.KeyedScript
	byKey   bool // an API key asks, which claims the idempotency key in its organization's cell as well
	claimed bool // the idempotency key is tied to the request before the operation's script, by an agent too
	do      func(ctx context.Context, s *Store, idem *Idempotency) (any, error)
}

// keyedTenant is a tenant with a transaction that is pending.
type keyedTenant struct {
	tenant
	grant   Grant
	pending Transaction
}

func newKeyedTenant(t *testing.T, s *Store) keyedTenant {
	t.Helper()
	w := keyedTenant{tenant: newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000})}
	w.grant = w.exchange(t, s)
	w.pending = w.begin(t, s, w.grant.AccessToken, 20)
	return w
}

// everyKeyed returns all operations that take an idempotency key, as the tenant runs them.
func (w keyedTenant) everyKeyed() []keyedOperation {
	charge := func(c Caller) func(context.Context, *Store, *Idempotency) (any, error) {
		return func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.Charge(ctx, c, w.session.ID, Charge{Count: 2, Value: 3, Idempotency: idem})
		}
	}
	batch := func(c Caller) func(context.Context, *Store, *Idempotency) (any, error) {
		return func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			charges := []BatchCharge{{w.session.ID, Charge{Count: 2, Value: 3}}, {w.session.ID, Charge{Count: 1, Scope: "admin"}},
				{w.session.ID, Charge{Count: 500}}, {w.session.ID, Charge{Count: 1, Value: 1}}}
			outcomes, err := s.ChargeBatch(ctx, c, charges, idem)
			if err != nil {
				return nil, err
			}
			return outcomes, outcomes[0].Err
		}
	}
	begin := func(n NewTransaction) func(context.Context, *Store, *Idempotency) (any, error) {
		return func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			own := n
			own.Idempotency, own.Metadata = idem, `{"n":1}`
			return s.Begin(ctx, w.grant.AccessToken, own)
		}
	}
	rollback := func(c Caller) func(context.Context, *Store, *Idempotency) (any, error) {
		return func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.Rollback(ctx, c, w.pending.ID, Rollback{Reason: "why", Idempotency: idem})
		}
	}
	key, token := w.byKey(), byToken(w.grant)
	return []keyedOperation{
		{"CreateSession", createSession, true, true, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 7, MaxValue: 8, Lifetime: time.Hour,
				Scopes: []string{"read"}, Metadata: `{"n":1}`, Idempotency: idem})
		}},
		{"Charge by token", chargeSession, false, false, charge(token)},
		{"Charge by key", chargeSession, true, true, charge(key)},
		{"ChargeBatch by token", chargeBatch, false, true, batch(token)},
		{"ChargeBatch by key", chargeBatch, true, true, batch(key)},
		{"Begin", beginSessionTransaction, false, false, begin(w.beginning(30))},
		{"Begin without a session", beginTransaction, false, false, begin(w.alone(30))},
		{"Commit", commitTransaction, false, false, func(ctx context.Context, s *Store, idem *Idempotency) (any, error) {
			return s.Commit(ctx, w.grant.AccessToken, w.pending.ID,
				Commit{Value: new(money.MicroUSD(25)), PostState: `{"a":"*2:$1:x-\n"}`, Idempotency: idem})
		}},
		{"Rollback by token", rollbackTransaction, false, false, rollback(token)},
		{"Rollback by key", rollbackTransaction, true, true, rollback(key)},
	}
}

// onEachKeyed runs the test for each operation that takes an idempotency key, on a tenant of its own.
func onEachKeyed(t *testing.T, s *Store, test func(t *testing.T, w keyedTenant, operation keyedOperation)) {
	t.Helper()
	onEachKeyedThat(t, s, func(keyedOperation) bool { return true }, test)
}

// onEachKeyedThat is onEachKeyed for some of the operations.
func onEachKeyedThat(t *testing.T, s *Store, concerned func(keyedOperation) bool,
	test func(t *testing.T, w keyedTenant, operation keyedOperation)) {
	t.Helper()
	for i, operation := range (keyedTenant{}).everyKeyed() {
		if !concerned(operation) {
			continue
		}
		t.Run(operation.name, func(t *testing.T) {
			w := newKeyedTenant(t, s)
			test(t, w, w.everyKeyed()[i])
		})
	}
}

// effects are the visible results of operations, which show that something happened once.
type effects struct {
	usage                          Usage
	sessions, transactions, events int
}

func (w keyedTenant) effects(t *testing.T, s *Store) effects {
	t.Helper()
	usage := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage
	usage.Expires = time.Time{}
	return effects{
		usage, len(indexed(t, s, s.keys.OrganizationOpen(w.key.Organization))),
		len(indexed(t, s, s.keys.OrganizationTransactions(w.key.Organization))), len(w.follow(s)(t)),
	}
}

// repeatOf returns a fresh Idempotency for the same request: each request has its own replay fields.
func repeatOf(o *Idempotency) *Idempotency {
	return &Idempotency{Key: o.Key, Fingerprint: o.Fingerprint}
}

func TestAnIdempotencyKeyReplaysTheFirstOutcome(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			before := w.effects(t, s)
			first, err := operation.do(WithRequestID(t.Context(), "r-1"), s, idem)
			if err != nil || idem.Outcome.Replayed {
				t.Fatalf("%+v, %v, replayed %t", first, err, idem.Outcome.Replayed)
			}
			if w.effects(t, s) == before {
				t.Error("it had no effect")
			}
			for range 3 {
				wantUnchanged(t, s, "again", func() {
					again := repeatOf(idem)
					outcome, err := operation.do(WithRequestID(t.Context(), "r-2"), s, again)
					if err != nil || !reflect.DeepEqual(outcome, first) {
						t.Errorf("again %+v, %v, first %+v", outcome, err, first)
					}
					if !again.Outcome.Replayed || again.Outcome.FirstRequest != "r-1" {
						t.Errorf("%+v", again)
					}
				})
			}
			other := &Idempotency{Key: "other", Fingerprint: [32]byte{1}}
			if _, err = operation.do(t.Context(), s, other); other.Outcome.Replayed {
				t.Errorf("by another key: %v", err)
			}
		})
	})
}

// A refusal is an outcome too: it stays, though the same might be granted now.
func TestAnIdempotencyKeyReplaysARefusal(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newKeyedTenant(t, s)
		token, ctx := w.grant.AccessToken, t.Context()
		full, ended := w, w
		full.session = must(s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: 10, Lifetime: time.Hour}))(t)
		ended.session = w.newSession(t, s, time.Hour)
		stillOpen := ended.begin(t, s, token, 1)
		must(s.EndSession(ctx, w.byKey(), ended.session.ID))(t)
		irreversible := w.beginning(1)
		irreversible.Irreversible = true
		final := must(s.Begin(ctx, token, irreversible))(t)
		must(s.Commit(ctx, token, final.ID, Commit{}))(t)
		tooMany, tooMuch := &LimitError{"max_actions", full.session.Usage}, &LimitError{"max_value_usd", full.session.Usage}
		begin := func(n NewTransaction) func(*Idempotency) error {
			return func(idem *Idempotency) error {
				n.Idempotency = idem
				_, err := s.Begin(ctx, token, n)
				return err
			}
		}
		charge := func(w keyedTenant, c Caller, charge Charge) func(*Idempotency) error {
			return func(idem *Idempotency) error {
				charge.Idempotency = idem
				_, err := s.Charge(ctx, c, w.session.ID, charge)
				return err
			}
		}
		tests := []struct {
			name string
			do   func(idem *Idempotency) error
			want error
		}{
			{"too many actions", charge(full, byToken(w.grant), Charge{Count: 2}), tooMany},
			{"too much value, by key", charge(full, w.byKey(), Charge{Count: 1, Value: 11}), tooMuch},
			{"a session that is over", charge(ended, w.byKey(), Charge{Count: 1}), &NotActiveError{Completed}},
			{"too much to hold", begin(full.beginning(11)), tooMuch},
			{"a begin in a session that is over", begin(ended.beginning(0)), &NotActiveError{Completed}},
			{"a commit of what the session's end has undone", func(idem *Idempotency) error {
				_, err := s.Commit(ctx, token, stillOpen.ID, Commit{Idempotency: idem})
				return err
			}, &NotPendingError{RolledBack}},
			{"a rollback of what is final", func(idem *Idempotency) error {
				_, err := s.Rollback(ctx, w.byKey(), final.ID, Rollback{Idempotency: idem})
				return err
			}, ErrNotReversible},
		}
		for _, test := range tests {
			wantError(t, test.name, test.do(&Idempotency{Key: test.name}), test.want)
		}
		must(s.ChangeLimits(ctx, w.key, full.session.ID, NewLimits{MaxActions: new(int64(100)), MaxValue: new(money.MicroUSD(100))}))(t)
		must(peek(t, s).Del(ctx, s.keys.Transaction(w.agent.ID, stillOpen.ID)).Result())(t) // which is not kept as long
		for _, test := range tests {
			wantUnchanged(t, s, test.name, func() {
				again := &Idempotency{Key: test.name}
				if wantError(t, test.name, test.do(again), test.want); !again.Outcome.Replayed {
					t.Errorf("%s: it is not replayed", test.name)
				}
				reused := &Idempotency{Key: test.name, Fingerprint: [32]byte{9}}
				if wantError(t, test.name+", another request", test.do(reused), ErrIdempotencyKeyReused); reused.Outcome.Replayed {
					t.Errorf("%s: another request is replayed", test.name)
				}
			})
		}
	})
}

// The instance fills in missing fields, so a replay returns what the first request's instance filled in.
func TestASessionThatIsReplayedIsTheOneThatWasCreated(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		create := func(maxActions int64, maxValue money.MicroUSD, lifetime time.Duration) Session {
			return must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: maxActions,
				MaxValue: maxValue, Lifetime: lifetime, Idempotency: &Idempotency{Key: "key"}}))(t)
		}
		first := create(7, 8, time.Hour)
		if again := create(70, 80, 2*time.Hour); !reflect.DeepEqual(again, first) {
			t.Errorf("again %+v, first %+v", again, first)
		}
	})
}

func TestAnIdempotencyKeyIsForOneRequest(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			must(operation.do(t.Context(), s, &Idempotency{Key: "key", Fingerprint: [32]byte{1}}))(t)
			all := w.everyKeyed()
			wantUnchanged(t, s, "another request", func() {
				for _, other := range all {
					if other.byKey != operation.byKey {
						continue
					}
					reused := &Idempotency{Key: "key", Fingerprint: [32]byte{2}}
					_, err := other.do(t.Context(), s, reused)
					if wantError(t, other.name, err, ErrIdempotencyKeyReused); reused.Outcome.Replayed {
						t.Errorf("%s is replayed", other.name)
					}
				}
			})
		})
	})
}

// However many ask at once, on two instances of the service, it happens once, and all hear the same.
func TestRequestsAtOnceWithOneIdempotencyKeyHappenOnce(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		second := must(Open(s.config))(t)
		defer second.Close()
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			var replayed atomic.Int64
			outcomes := make([]any, 64)
			var wg sync.WaitGroup
			for i := range outcomes {
				store := []*Store{s, second}[i%2]
				wg.Go(func() {
					idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
					outcome, err := operation.do(t.Context(), store, idem)
					if err != nil {
						t.Error(err)
					}
					if idem.Outcome.Replayed {
						replayed.Add(1)
					}
					outcomes[i] = outcome
				})
			}
			wg.Wait()
			if n := replayed.Load(); n != 63 {
				t.Errorf("%d of 64 were replayed", n)
			}
			for _, outcome := range outcomes {
				if !reflect.DeepEqual(outcome, outcomes[0]) {
					t.Errorf("%+v and %+v", outcome, outcomes[0])
				}
			}
			if got, want := w.effects(t, s), effectsOfOne(t, s, operation.name); got != want {
				t.Errorf("it came to %+v, once to %+v", got, want)
			}
		})
	})
}

// effectsOfOne returns the results of an operation that runs once, without an idempotency key.
func effectsOfOne(t *testing.T, s *Store, name string) effects {
	t.Helper()
	w := newKeyedTenant(t, s)
	for _, operation := range w.everyKeyed() {
		if operation.name == name {
			must(operation.do(t.Context(), s, nil))(t)
		}
	}
	return w.effects(t, s)
}

// Failed authentication is no outcome: with a live token the same request happens. A caller without a live token does not get
// an earlier outcome.
func TestAnUnauthorizedCallerHasNoOutcomeAndLearnsOfNone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachKeyedThat(t, s, func(o keyedOperation) bool { return !o.byKey }, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			ask := func(g Grant, idem *Idempotency) (any, error) {
				w.grant = g
				for _, o := range w.everyKeyed() {
					if o.name == operation.name {
						return o.do(t.Context(), s, idem)
					}
				}
				return nil, nil
			}
			live, dead := w.grant, w.exchange(t, s)
			if err := s.RevokeFamily(t.Context(), live.AccessToken, dead.Family); err != nil {
				t.Fatal(err)
			}
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			wantUnchanged(t, s, "before", func() {
				_, err := ask(dead, repeatOf(idem))
				wantError(t, "before", err, ErrInvalidToken)
			})
			first, err := ask(live, idem)
			if err != nil || idem.Outcome.Replayed {
				t.Errorf("%v, replayed %t", err, idem.Outcome.Replayed)
			}
			wantUnchanged(t, s, "after", func() {
				for _, fingerprint := range [][32]byte{idem.Fingerprint, {9}} {
					refused := &Idempotency{Key: "key", Fingerprint: fingerprint}
					if _, err := ask(dead, refused); err != ErrInvalidToken || refused.Outcome.Replayed {
						t.Errorf("after: %v, replayed %t", err, refused.Outcome.Replayed)
					}
				}
			})
			other := w.exchange(t, s) // another token of the same agent
			if outcome, err := ask(other, repeatOf(idem)); err != nil || !reflect.DeepEqual(outcome, first) {
				t.Errorf("%+v, %v, first %+v", outcome, err, first)
			}
			must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
			wantUnchanged(t, s, "of a revoked agent", func() {
				_, err := ask(other, repeatOf(idem))
				wantError(t, "of a revoked agent", err, ErrInvalidToken)
			})
		})
	})
}

func TestARotatedKeyLearnsOfNoOutcome(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachKeyedThat(t, s, func(o keyedOperation) bool { return o.byKey }, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			first := must(operation.do(t.Context(), s, idem))(t)
			must(s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: [32]byte{7}}, 0, nil))(t)
			wantUnchanged(t, s, "by the old key", func() {
				_, err := operation.do(t.Context(), s, repeatOf(idem))
				wantError(t, "by the old key", err, ErrInvalidAPIKey)
			})
			w.key.Hash = [32]byte{7}
			must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t) // which is not the one that asks
			for _, o := range w.everyKeyed() {
				if o.name != operation.name {
					continue
				}
				again := repeatOf(idem)
				if outcome, err := o.do(t.Context(), s, again); err != nil || !reflect.DeepEqual(outcome, first) || !again.Outcome.Replayed {
					t.Errorf("by the new key %+v, %v, replayed %t; first %+v", outcome, err, again.Outcome.Replayed, first)
				}
			}
		})
	})
}

func TestEveryCallerHasSeparateIdempotencyKeys(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 100}), newTenant(t, s, NewSession{MaxActions: 100})
		session := func(g Grant) uuid.UUID {
			return must(s.CreateSession(t.Context(), w.key, NewSession{Agent: g.Agent, MaxActions: 100, Lifetime: time.Hour}))(t).ID
		}
		near, far := putAgent(t, s, w.key, NewID(w.agent.ID)), putAgent(t, s, w.key, otherCell(w.agent.ID))
		neighbour := APIKey{Organization: NewID(w.key.Organization), Hash: [32]byte{6}} // whose claims are in the same cell
		must(s.CreateOrganization(t.Context(), "", neighbour, "neighbour", "", nil))(t)
		theirs := must(s.CreateSession(t.Context(), neighbour,
			NewSession{Agent: putAgent(t, s, neighbour, NewRootID()).Agent, MaxActions: 100, Lifetime: time.Hour}))(t)
		for i, caller := range []struct {
			Caller
			session uuid.UUID
		}{
			{byToken(w.exchange(t, s)), w.session.ID},
			{w.byKey(), w.session.ID},
			{byToken(near), session(near)},
			{byToken(far), session(far)},
			{foreign.byKey(), foreign.session.ID},
			{byToken(foreign.exchange(t, s)), foreign.session.ID},
			{Caller{Key: &neighbour}, theirs.ID},
		} {
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{byte(i)}}
			_, err := s.Charge(t.Context(), caller.Caller, caller.session, Charge{Count: 1, Idempotency: idem})
			if err != nil || idem.Outcome.Replayed {
				t.Errorf("caller %d: %v, replayed %t", i, err, idem.Outcome.Replayed)
			}
			batch := &Idempotency{Key: "key of a batch", Fingerprint: [32]byte{byte(i)}}
			outcomes := must(s.ChargeBatch(t.Context(), caller.Caller, []BatchCharge{{caller.session, Charge{Count: 1}}}, batch))(t)
			if outcomes[0].Err != nil || batch.Outcome.Replayed {
				t.Errorf("caller %d: %v, replayed %t", i, outcomes[0].Err, batch.Outcome.Replayed)
			}
		}
	})
}

// An organization's requests on all its agents meet in its own cell.
func TestAnOrganizationsIdempotencyKeyIsForOneOfItsAgents(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100})
		idem := Idempotency{Key: "key", Fingerprint: [32]byte{1}}
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: &idem}))(t)
		var others []uuid.UUID
		for _, id := range []uuid.UUID{NewID(w.agent.ID), otherCell(w.agent.ID)} {
			grant := putAgent(t, s, w.key, id)
			session := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: grant.Agent, MaxActions: 9, Lifetime: time.Hour}))(t)
			others = append(others, session.ID, NewID(id))
		}
		wantUnchanged(t, s, "another agent's", func() {
			for _, session := range others {
				_, err := s.Charge(t.Context(), w.byKey(), session, Charge{Count: 1, Idempotency: &Idempotency{Key: "key", Fingerprint: [32]byte{2}}})
				wantError(t, "Charge", err, ErrIdempotencyKeyReused)
				_, err = s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{{session, Charge{Count: 1}}},
					&Idempotency{Key: "key", Fingerprint: [32]byte{2}})
				wantError(t, "ChargeBatch", err, ErrIdempotencyKeyReused)
			}
		})
	})
}

func TestOutcomesAreKeptForADay(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			before := outcomesKept(t, s)
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			must(operation.do(t.Context(), s, idem))(t)
			var kept []string
			for key := range outcomesKept(t, s) {
				if !before[key] {
					kept = append(kept, key)
					wantTTL(t, s, key, 24*time.Hour)
				}
			}
			if want := map[bool]int{false: 1, true: 2}[operation.claimed]; len(kept) != want {
				t.Errorf("%q are kept, want %d", kept, want)
			}
			for _, key := range kept {
				must(peek(t, s).PExpire(t.Context(), key, time.Hour).Result())(t)
			}
			must(operation.do(t.Context(), s, repeatOf(idem)))(t)
			for _, key := range kept { // for a replay does not prolong it
				wantTTL(t, s, key, time.Hour)
			}
			for _, key := range kept {
				must(peek(t, s).Del(t.Context(), key).Result())(t)
			}
			fresh := repeatOf(idem)
			if _, _ = operation.do(t.Context(), s, fresh); fresh.Outcome.Replayed {
				t.Error("an outcome that is not kept is replayed")
			}
		})
	})
}

// outcomesKept returns the keys of all outcomes and claims.
func outcomesKept(t *testing.T, s *Store) map[string]bool {
	t.Helper()
	kept := map[string]bool{}
	for _, key := range keysKept(t, s) {
		if strings.HasPrefix(key, s.config.Prefix+"i:") {
			kept[key] = true
		}
	}
	return kept
}

func TestWithoutAnIdempotencyKeyNoOutcomeIsKept(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			before := len(keysKept(t, s))
			must(operation.do(t.Context(), s, nil))(t)
			if kept := outcomesKept(t, s); len(kept) != 0 {
				t.Errorf("%v", kept)
			}
			want := map[string]int{"CreateSession": 1, "Begin": 1, "Begin without a session": 1, // the object
				"Commit": -1, "Rollback by token": -1, "Rollback by key": -1}[operation.name] // the last hold
			if more := len(keysKept(t, s)) - before; more != want {
				t.Errorf("%d more keys, want %d", more, want)
			}
		})
	})
}

// The reason for idempotency keys: the first reply is lost, and the caller repeats the request.
func TestARepeatedRequestAfterALostReplyHappensOnce(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			loadScripts(t, s)
			want := effectsOfOne(t, s, operation.name)
			p.LoseReplies(operation.script.Keyed.SHA(), 100)
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			_, err := operation.do(WithRequestID(t.Context(), "lost"), s, repeatOf(idem))
			wantError(t, "the first time", err, ErrOutcomeUnknown)
			if n := p.Requests(); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
			p.LoseReplies("", 0)
			outcome, err := operation.do(WithRequestID(t.Context(), "again"), s, idem)
			if err != nil || !idem.Outcome.Replayed || idem.Outcome.FirstRequest != "lost" {
				t.Errorf("again: %+v, %v, %+v", outcome, err, idem)
			}
			if got := w.effects(t, s); got != want {
				t.Errorf("it came to %+v, once to %+v", got, want)
			}
		})
	})
}

// A claim that is lost leaves nothing in doubt: nothing has happened before it is answered.
func TestALostClaimOnAnIdempotencyKeyLeavesNothingInDoubt(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		onEachKeyedThat(t, s, func(o keyedOperation) bool { return o.claimed }, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			loadScripts(t, s)
			before := w.effects(t, s)
			claim := kernel.ClaimAgentKey
			if operation.byKey {
				claim = kernel.ClaimKey
			}
			if operation.name == "CreateSession" {
				claim = claimSession
			}
			p.LoseReplies(claim.SHA(), 100)
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			_, err := operation.do(t.Context(), s, repeatOf(idem))
			wantError(t, "the first time", err, ErrUnavailable)
			p.LoseReplies("", 0)
			if claim == claimSession {
				before.sessions++ // the entry of a session that does not exist
			}
			if got := w.effects(t, s); got != before {
				t.Errorf("%+v became %+v", before, got)
			}
			if _, err = operation.do(t.Context(), s, idem); err != nil || idem.Outcome.Replayed {
				t.Errorf("again: %v, replayed %t", err, idem.Outcome.Replayed)
			}
		})
	})
}

func TestOutcomesAreReplayedAfterRedisForgotTheScripts(t *testing.T) {
	t.Parallel()
	onEachForgetful(t, func(t *testing.T, s *Store) {
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			forgetScripts(t, s)
			first := must(operation.do(t.Context(), s, idem))(t)
			forgetScripts(t, s)
			again := repeatOf(idem)
			if outcome := must(operation.do(t.Context(), s, again))(t); !reflect.DeepEqual(outcome, first) || !again.Outcome.Replayed {
				t.Errorf("%+v, first %+v", outcome, first)
			}
		})
	})
}

// Due holds are released before; that is not the request's outcome.
func TestHoldsThatAreDueAreNoOutcome(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			w.letPass(t, s, w.begin(t, s, w.grant.AccessToken, 950))
			idem := &Idempotency{Key: "key", Fingerprint: [32]byte{1}}
			first, err := operation.do(t.Context(), s, idem)
			if err != nil || idem.Outcome.Replayed {
				t.Errorf("%+v, %v, replayed %t", first, err, idem.Outcome.Replayed)
			}
			for key := range outcomesKept(t, s) {
				if strings.Contains(must(peek(t, s).Get(t.Context(), key).Result())(t), "holds_due") {
					t.Errorf("%s holds that holds were due", key)
				}
			}
			w.letPass(t, s, w.begin(t, s, w.grant.AccessToken, 50))
			again := repeatOf(idem)
			if outcome := must(operation.do(t.Context(), s, again))(t); !reflect.DeepEqual(outcome, first) || !again.Outcome.Replayed {
				t.Errorf("%+v, first %+v", outcome, first)
			}
		})
	})
}

// refusedByName is a request whose refusal is of what it names, and the same corrected.
type refusedByName struct {
	do   func(ctx context.Context, s *Store, mistyped bool, idem *Idempotency) error
	want error
}

// everyRefusedByName returns one for each operation and each caller that can be refused so.
func (w keyedTenant) everyRefusedByName(foreign tenant, theirs Transaction) map[string]refusedByName {
	pick := func(mistyped bool, wrong, right uuid.UUID) uuid.UUID {
		if mistyped {
			return wrong
		}
		return right
	}
	create := func(agent uuid.UUID, scope string) func(context.Context, *Store, bool, *Idempotency) error {
		return func(ctx context.Context, s *Store, mistyped bool, idem *Idempotency) error {
			n := NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour, Idempotency: idem}
			if mistyped {
				n.Agent, n.Scopes = agent, []string{scope}
			}
			_, err := s.CreateSession(ctx, w.key, n)
			return err
		}
	}
	charge := func(c Caller, session uuid.UUID, scope string) func(context.Context, *Store, bool, *Idempotency) error {
		return func(ctx context.Context, s *Store, mistyped bool, idem *Idempotency) error {
			asked := Charge{Count: 1, Idempotency: idem}
			if mistyped {
				asked.Scope = scope
			}
			_, err := s.Charge(ctx, c, pick(mistyped, session, w.session.ID), asked)
			return err
		}
	}
	rollback := func(c Caller, wrong uuid.UUID) func(context.Context, *Store, bool, *Idempotency) error {
		return func(ctx context.Context, s *Store, mistyped bool, idem *Idempotency) error {
			_, err := s.Rollback(ctx, c, pick(mistyped, wrong, w.pending.ID), Rollback{Idempotency: idem})
			return err
		}
	}
	rotate := func(ctx context.Context, s *Store, mistyped bool, idem *Idempotency) error {
		idem.Seal = plainSeal("secret")
		_, err := s.RotateAgentSecret(ctx, w.key, pick(mistyped, foreign.agent.ID, w.agent.ID), SecretRotation{Hash: [32]byte{8}}, idem)
		return err
	}
	commit := func(ctx context.Context, s *Store, mistyped bool, idem *Idempotency) error {
		_, err := s.Commit(ctx, w.grant.AccessToken, pick(mistyped, NewID(w.agent.ID), w.pending.ID), Commit{Idempotency: idem})
		return err
	}
	key, token := w.byKey(), byToken(w.grant)
	return map[string]refusedByName{
		"a session of no agent":                   {create(NewRootID(), "read"), ErrUnknownAgent},
		"a session of another's agent":            {create(foreign.agent.ID, "read"), ErrUnknownAgent},
		"a session with a scope that is not held": {create(w.agent.ID, "admin"), &ScopeError{Scope: "admin"}},
		"a charge of nothing, by key":             {charge(key, NewID(w.agent.ID), ""), ErrUnknownSession},
		"a charge of another's session, by key":   {charge(key, foreign.session.ID, ""), ErrUnknownSession},
		"a charge of nothing, by token":           {charge(token, NewID(w.agent.ID), ""), ErrUnknownSession},
		"a charge by a scope not held, by key":    {charge(key, w.session.ID, "admin"), &ScopeError{Scope: "admin"}},
		"a charge by a scope not held, by token":  {charge(token, w.session.ID, "admin"), &ScopeError{Scope: "admin"}},
		"a rollback of nothing, by key":           {rollback(key, NewID(w.agent.ID)), ErrUnknownTransaction},
		"a rollback of another's, by key":         {rollback(key, theirs.ID), ErrUnknownTransaction},
		"a rollback of nothing, by token":         {rollback(token, NewID(w.agent.ID)), ErrUnknownTransaction},
		"a commit of nothing":                     {commit, ErrUnknownTransaction},
		"a rotation of another's secret":          {rotate, ErrUnknownAgent},
	}
}

func TestARefusalOfAnUnknownObjectLeavesTheIdempotencyKeyUnused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		foreign := newTenant(t, s, NewSession{MaxActions: 10})
		theirs := foreign.begin(t, s, foreign.exchange(t, s).AccessToken, 0)
		for name := range (keyedTenant{}).everyRefusedByName(foreign, theirs) {
			t.Run(name, func(t *testing.T) {
				w := newKeyedTenant(t, s)
				test := w.everyRefusedByName(foreign, theirs)[name]
				for range 2 {
					wantError(t, "mistyped", test.do(t.Context(), s, true, &Idempotency{Key: "key", Fingerprint: [32]byte{1}}), test.want)
				}
				corrected := &Idempotency{Key: "key", Fingerprint: [32]byte{2}}
				wantError(t, "corrected", test.do(t.Context(), s, false, corrected), nil)
				again := repeatOf(corrected)
				if wantError(t, "corrected, again", test.do(t.Context(), s, false, again), nil); !again.Outcome.Replayed {
					t.Error("the corrected request is not replayed")
				}
				err := test.do(t.Context(), s, true, &Idempotency{Key: "key", Fingerprint: [32]byte{1}})
				if err != ErrIdempotencyKeyReused && !(strings.Contains(name, "by token") || name == "a commit of nothing") {
					t.Errorf("mistyped again, after that: %v", err)
				}
				again = repeatOf(corrected)
				if wantError(t, "corrected, at last", test.do(t.Context(), s, false, again), nil); !again.Outcome.Replayed {
					t.Error("the outcome is gone")
				}
			})
		}
	})
}

// An instance that ends between the claim and the operation leaves a claim of which nothing will come.
func TestAnAbandonedClaimIsReleasedForAnotherRequest(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newKeyedTenant(t, s)
		charge := func(fingerprint byte) error {
			_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: "key", Fingerprint: [32]byte{fingerprint}}})
			return err
		}
		place := s.core.ClaimPlace(w.key.Organization, &Idempotency{Key: "key"})
		age := func(by time.Duration) {
			must(peek(t, s).PExpire(t.Context(), place, kernel.OutcomeLifetime-by).Result())(t)
		}
		claim := func(fingerprint byte, at uuid.UUID) {
			abandoned := &Idempotency{Key: "key", Fingerprint: [32]byte{fingerprint}, At: at}
			wantError(t, "the claim", s.core.Authorize(t.Context(), w.byKey(), abandoned), nil)
		}
		claim(1, w.session.ID)
		wantError(t, "while the first may still run", charge(2), ErrIdempotencyKeyReused)
		age(kernel.AbandonedAfter + time.Second)
		wantError(t, "later", charge(2), nil)
		age(kernel.AbandonedAfter + time.Second)
		wantError(t, "against an outcome", charge(3), ErrIdempotencyKeyReused)

		outcome := kernel.Actor{Organization: w.key.Organization}.KeyDigest(&Idempotency{Key: "key"}, "")
		for _, key := range []string{place, s.keys.Outcome(w.session.ID, outcome)} {
			must(peek(t, s).Del(t.Context(), key).Result())(t)
		}
		claim(4, uuid.Nil)
		age(kernel.AbandonedAfter + time.Second)
		wantError(t, "against a batch, of which a part may be done", charge(5), ErrIdempotencyKeyReused)
	})
}

// What an organization's idempotency keys leave behind can be found when the organization is deleted.
func TestOutcomesAndClaimsEndWithTheirOrganization(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		onEachKeyed(t, s, func(t *testing.T, w keyedTenant, operation keyedOperation) {
			before := outcomesKept(t, s)
			must(operation.do(t.Context(), s, &Idempotency{Key: "key", Fingerprint: [32]byte{1}}))(t)
			found := 0
			for key := range outcomesKept(t, s) {
				value := must(peek(t, s).Get(t.Context(), key).Result())(t)
				if before[key] || strings.HasPrefix(value, "*2:") { // an agent's claim
					continue
				}
				found++
				if !strings.HasSuffix(value, string(w.key.Organization[:])) && !strings.HasSuffix(value, w.key.Organization.String()) {
					t.Errorf("%s holds %q", key, value)
				}
			}
			if found == 0 {
				t.Error("nothing is kept")
			}
		})
	})
}

func TestDigestsDistinguishTheirParts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	seen := map[string][]string{}
	for _, parts := range [][]string{
		{}, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"\x00\x01a"}, {long}, {long[:44], long[44:]}, {long + "x"},
	} {
		name := kernel.Digest(parts...)
		if len(name) != 22 || seen[name] != nil {
			t.Errorf("%q and %q are both %q", parts, seen[name], name)
		}
		seen[name] = append(parts, "")
	}
	idem := &Idempotency{Key: "key"}
	agent := kernel.Actor{Organization: uuid.New(), Agent: uuid.New(), Family: kernel.FamilyField(uuid.New())}
	organization := agent
	organization.Family = ""
	otherFamily := agent
	otherFamily.Family = kernel.FamilyField(uuid.New())
	if agent.KeyDigest(idem, "") != otherFamily.KeyDigest(idem, "") {
		t.Error("an agent's keys are another family's no more")
	}
	names := map[string]bool{}
	for _, act := range []kernel.Actor{agent, organization, {Organization: agent.Agent, Agent: agent.Organization}} {
		for _, part := range []string{"", string(uuid.Nil[:]), string(agent.Agent[:])} {
			names[act.KeyDigest(idem, part)] = true
		}
	}
	if len(names) != 9 {
		t.Errorf("9 keys have %d names", len(names))
	}
}

func TestAnOutcomeThatNoScriptReturnsIsAnError(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]any{
		"nothing":          {},
		"no request":       {nil, "", []any{"ok"}},
		"no reply":         {"r", ""},
		"an empty reply":   {"r", "", []any{}},
		"an unknown reply": {"r", "1", []any{"nonsense"}},
	} {
		if r, err := new(Idempotency).Read(&reply{Values: values}); err == nil {
			t.Errorf("%s: %v", name, r)
		} else if !strings.Contains(fmt.Sprint(err), errReply.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
