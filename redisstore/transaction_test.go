package redisstore

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

func TestARefusedBeginChangesNothing(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 3, MaxValue: money.USD}, func(t *testing.T, s *Store, w tenant) {
		grant, revoked := w.exchange(t, s), w.exchange(t, s)
		token := grant.AccessToken
		must(0, s.RevokeFamily(t.Context(), token, revoked.Family))(t)
		foreign := newTenant(t, s, NewSession{MaxActions: 5, MaxValue: money.USD})
		neighbour := putAgent(t, s, w.key, NewID(w.agent.ID))
		neighbours := must(s.CreateSession(t.Context(), w.key,
			NewSession{Agent: neighbour.Agent, MaxActions: 5, Lifetime: time.Hour}))(t)
		dead := newTenant(t, s, NewSession{MaxActions: 1})
		deadToken := dead.exchange(t, s).AccessToken
		must(s.RevokeAgent(t.Context(), dead.key, dead.agent.ID))(t)
		elsewhere := token
		elsewhere.Organization = foreign.key.Organization
		for _, test := range []struct {
			name    string
			token   AccessToken
			session uuid.UUID
			want    error
		}{
			{"an unknown session", token, NewID(w.agent.ID), ErrUnknownSession},
			{"an unknown session in another cell", token, otherCell(w.agent.ID), ErrUnknownSession},
			{"another organization's session", token, foreign.session.ID, ErrUnknownSession},
			{"another agent's session in the same cell", token, neighbours.ID, ErrUnknownSession},
			{"a revoked family", revoked.AccessToken, w.session.ID, ErrInvalidToken},
			{"a revoked agent", deadToken, dead.session.ID, ErrInvalidToken},
			{"a revoked agent, without a session", deadToken, uuid.Nil, ErrInvalidToken},
			{"a token of another organization", elsewhere, w.session.ID, ErrInvalidToken},
			{"a token of another organization, without a session", elsewhere, uuid.Nil, ErrInvalidToken},
		} {
			wantUnchanged(t, s, test.name, func() {
				n := w.beginning(0)
				n.Session = test.session
				begun, err := s.Begin(t.Context(), test.token, n)
				wantError(t, test.name, err, test.want)
				if begun != (Transaction{}) {
					t.Errorf("%s: %+v", test.name, begun)
				}
			})
		}
	})
}

// A session's overage stops where Redis's Lua counts no further.
func TestOverageStopsWhereItWouldBecomeInexact(t *testing.T) {
	t.Parallel()
	const most = 1<<53 - 1
	for _, test := range []struct{ before, cost, after, undone money.MicroUSD }{
		{most - money.Max, money.Max, most, most - money.Max},
		{most - 7, 7, most, most - 7},
		{most - 7, 8, most, most - 8},
		{most - 7, money.Max, most, most - money.Max},
		{most, 1, most, most - 1},
	} {
		onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
			w := newTenant(t, s, NewSession{MaxActions: 10})
			token := w.exchange(t, s).AccessToken
			stored := s.keys.Session(w.agent.ID, w.session.ID)
			must(peek(t, s).HSet(t.Context(), stored, "ov", int64(test.before)).Result())(t)
			begun := w.begin(t, s, token, 0)
			committed := must(s.Commit(t.Context(), token, begun.ID, Commit{Value: &test.cost}))(t)
			if committed.Value != 0 || committed.Overage != test.cost {
				t.Errorf("%+v", committed)
			}
			read := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			changed := must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxActions: new(int64(11))}))(t)
			if read.ValueOverage != test.after || changed.ValueOverage != test.after {
				t.Errorf("read %s, changed %s, want %s", read.ValueOverage, changed.ValueOverage, test.after)
			}
			must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
			if read = must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); read.ValueOverage != test.undone {
				t.Errorf("rolled back, it is %s, want %s", read.ValueOverage, test.undone)
			}
		})
	}
}

func TestARollbackTakesNoMoreOverageThanThereIs(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		token := w.exchange(t, s).AccessToken
		begun := w.begin(t, s, token, 0)
		must(s.Commit(t.Context(), token, begun.ID, Commit{Value: new(money.MicroUSD(9))}))(t)
		must(peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "ov", 8).Result())(t)
		must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		if read := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); read.ValueOverage != 0 {
			t.Errorf("%s is left", read.ValueOverage)
		}
	})
}

// caller_test.go has the operations that organizations may ask for too.
func TestATransactionIsCommittedByItsAgentAlone(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		foreign := newTenant(t, s, NewSession{MaxActions: 10})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		must(0, s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family))(t)
		own := []uuid.UUID{w.begin(t, s, grant.AccessToken, 0).ID, must(s.Begin(t.Context(), grant.AccessToken, w.alone(0)))(t).ID}
		none := []uuid.UUID{NewID(w.agent.ID), otherCell(w.agent.ID), w.session.ID, w.agent.ID, uuid.Nil}
		for name, test := range map[string]struct {
			by   Grant
			ids  []uuid.UUID
			want error
		}{
			"its own agent, of none":       {grant, none, ErrUnknownTransaction},
			"another organization's agent": {foreign.exchange(t, s), own, ErrUnknownTransaction},
			"an agent of the same cell":    {putAgent(t, s, w.key, NewID(w.agent.ID)), own, ErrUnknownTransaction},
			"an agent of another cell":     {putAgent(t, s, w.key, otherCell(w.agent.ID)), own, ErrUnknownTransaction},
			"a revoked family":             {dead, append(own, none...), ErrInvalidToken},
		} {
			wantUnchanged(t, s, name, func() {
				for _, id := range test.ids {
					wantError(t, "Commit by "+name, errOf(s.Commit(t.Context(), test.by.AccessToken, id, Commit{})), test.want)
					raised := errOf(s.ChangeHold(t.Context(), test.by.AccessToken, id, NewHold{Value: new(money.MicroUSD(1))}))
					wantError(t, "ChangeHold by "+name, raised, test.want)
				}
			})
		}
	})
}

// The status is read from the session's end, so it holds for as long as the transaction can be read, whatever of the
// session is kept.
func TestATransactionStaysRolledBackWithoutItsSession(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		token, session := w.exchange(t, s).AccessToken, s.keys.Session(w.agent.ID, w.session.ID)
		pending, committed := w.begin(t, s, token, 30), w.commit(t, s, token, 10)
		ended := must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		wantRolledBack := func(what string, since time.Time) {
			t.Helper()
			for _, caller := range []Caller{w.byKey(), {Token: &token}} {
				read := must(s.Transaction(t.Context(), caller, pending.ID))(t)
				listed := w.listedTransactions(t, s, caller, Query{Limit: 200, Status: RolledBack})
				if read.Status != RolledBack || read.Held != 0 || !read.RolledBack.Equal(since) || len(listed) != 1 || !listed[0].RolledBack.Equal(since) {
					t.Errorf("%s: read %+v, listed %+v", what, read, listed)
				}
			}
		}
		must(peek(t, s).HSet(t.Context(), s.keys.Transaction(w.agent.ID, pending.ID), "x", ended.Add(time.Millisecond).UnixMilli()).Result())(t)
		wantRolledBack("though its own time is up as well by now", ended)
		must(peek(t, s).Del(t.Context(), session).Result())(t) // which is kept as long or shorter
		wantRolledBack("without its session", time.Time{})
		wantUnchanged(t, s, "settling what is settled", func() {
			wantError(t, "Commit", errOf(s.Commit(t.Context(), token, pending.ID, Commit{})), &NotPendingError{RolledBack})
		})
		must(s.Rollback(t.Context(), w.byKey(), committed.ID, Rollback{}))(t)
		if must(peek(t, s).Exists(t.Context(), session).Result())(t) != 0 {
			t.Error("the session is back")
		}
	})
}

// Settled late, when what was kept with it has nearly run out.
func TestALateSettlementKeepsWhatIsReadWithTheTransaction(t *testing.T) {
	onTenantOf(t, Config{Retention: 48 * time.Hour}, NewSession{MaxActions: 10, MaxValue: 100, Lifetime: time.Hour}, func(t *testing.T, s *Store, w tenant) {
		token := w.exchange(t, s).AccessToken
		late := w.begin(t, s, token, 10)
		agent := w.agent.ID
		kept := []string{s.keys.Transaction(agent, late.ID), s.keys.SessionTransactions(agent, w.session.ID), s.keys.AgentTransactions(agent)}
		for _, settle := range []func() error{
			func() error { return errOf(s.Commit(t.Context(), token, late.ID, Commit{})) },
			func() error { return errOf(s.Rollback(t.Context(), w.byKey(), late.ID, Rollback{})) },
		} {
			for _, key := range kept {
				must(peek(t, s).PExpire(t.Context(), key, time.Hour).Result())(t)
			}
			must(0, settle())(t)
			for _, key := range kept {
				wantTTL(t, s, key, 48*time.Hour)
			}
		}
	})
}

// A replay returns the transaction, so the transaction is kept at least as long as the outcome.
func TestATransactionSettledByAnIdempotencyKeyIsKeptForItsReplay(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: time.Hour}, func(t *testing.T, s *Store) {
		for name, settle := range map[string]func(tenant, AccessToken, uuid.UUID, *Idempotency) error{
			"commit": func(_ tenant, token AccessToken, id uuid.UUID, idem *Idempotency) error {
				return errOf(s.Commit(t.Context(), token, id, Commit{Idempotency: idem}))
			},
			"rollback": func(w tenant, _ AccessToken, id uuid.UUID, idem *Idempotency) error {
				return errOf(s.Rollback(t.Context(), w.byKey(), id, Rollback{Idempotency: idem}))
			},
		} {
			w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
			token := w.exchange(t, s).AccessToken
			for i, idem := range []*Idempotency{nil, {Key: name}, nil} { // the last of which does not shorten what is kept
				begun := w.begin(t, s, token, 1)
				wantError(t, name, settle(w, token, begun.ID, idem), nil)
				wantTTL(t, s, s.keys.Transaction(w.agent.ID, begun.ID), []time.Duration{time.Hour, kernel.OutcomeLifetime, time.Hour}[i])
			}
			wantTTL(t, s, s.keys.AgentTransactions(w.agent.ID), kernel.OutcomeLifetime)
			wantTTL(t, s, s.keys.SessionTransactions(w.agent.ID, w.session.ID), kernel.OutcomeLifetime)
		}
	})
}

func TestATransactionIsGoneAfterTheRetention(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{Retention: 20 * time.Millisecond}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		begun := must(s.Begin(t.Context(), grant.AccessToken, w.alone(0)))(t)
		must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{}))(t)
		eventually(t, "the transaction is gone", func() bool {
			_, err := s.Transaction(t.Context(), byToken(grant), begun.ID)
			return err == ErrUnknownTransaction
		})
		wantError(t, "Rollback", errOf(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{})), ErrUnknownTransaction)
	})
}

// Only permanent objects have no TTL: organizations, agents, their indexes and trails.
func TestNothingIsKeptForGoodThatBelongsToASession(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 100, MaxValue: money.USD}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		for i, idem := range []*Idempotency{nil, {Key: "k"}} {
			own := func(name string) *Idempotency {
				if idem == nil {
					return nil
				}
				return &Idempotency{Key: name}
			}
			n := w.beginning(5)
			n.Idempotency = own("begin")
			first := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
			must(s.Commit(t.Context(), grant.AccessToken, first.ID, Commit{Idempotency: own("commit")}))(t)
			must(s.Rollback(t.Context(), w.byKey(), first.ID, Rollback{Idempotency: own("rollback")}))(t)
			must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: own("charge")}))(t)
			must(s.ChargeBatch(t.Context(), byToken(grant), []BatchCharge{{w.session.ID, Charge{Count: 1}}}, own("batch")))(t)
			must(s.Begin(t.Context(), grant.AccessToken, w.alone(0)))(t)
			w.letPass(t, s, w.begin(t, s, grant.AccessToken, 5))
			if i == 1 {
				w.begin(t, s, grant.AccessToken, 5)
			}
			must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Lifetime: new(time.Hour)}))(t)
		}
		must(s.EndSession(t.Context(), w.byKey(), w.newSession(t, s, time.Hour).ID))(t)
		want := []string{"a", "ev", "o", "oa", "oo", "os", "ot"}
		var forGood, timed []string
		client := peek(t, s)
		for _, key := range keysKept(t, s) {
			kind, _, _ := strings.Cut(strings.TrimPrefix(key, s.config.Prefix), ":")
			if must(client.PTTL(t.Context(), key).Result())(t) < 0 {
				forGood = append(forGood, kind)
			} else if !slices.Contains(timed, kind) {
				timed = append(timed, kind)
			}
		}
		slices.Sort(forGood)
		slices.Sort(timed)
		if !slices.Equal(forGood, want) {
			t.Errorf("%q stand for good, want %q", forGood, want)
		}
		if want := []string{"af", "as", "at", "f", "i", "s", "sh", "stx", "t"}; !slices.Equal(timed, want) {
			t.Errorf("%q are for a time, want %q", timed, want)
		}
	})
}

// Charges, batches, begins and commits at once from two instances of the service fill a session exactly, and not beyond.
func TestAllThatSpendsAtOnceFillsALimitExactly(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]NewSession{
		"actions": {MaxActions: 1_003, MaxValue: money.Max},
		"value":   {MaxActions: 1_000_000, MaxValue: 4_003},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, session)
				instances, grant := []*Store{s, anotherInstance(t, s)}, w.exchange(t, s)
				var done spent
				var wg sync.WaitGroup
				for i := range 64 {
					wg.Go(func() {
						for _, value := range []money.MicroUSD{11, 3, 1} {
							for w.spends(t, instances[i%2], grant, i/2, value, &done) {
							}
						}
					})
				}
				wg.Wait()

				usage := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage
				if usage.ActionCount != done.actions.Load() || int64(usage.ValueUsed) != done.value.Load() || usage.ValueHeld != 0 {
					t.Errorf("%d actions and %d were acknowledged, and %+v is stored", done.actions.Load(), done.value.Load(), usage)
				}
				if usage.ActionCount != usage.MaxActions && usage.ValueUsed != usage.MaxValue {
					t.Errorf("neither limit is filled: %+v", usage)
				}
				numbers := map[int64]bool{}
				for _, one := range w.listedTransactions(t, s, w.byKey(), Query{Limit: 200, Session: w.session.ID}) {
					numbers[one.Sequence] = true
				}
				for i := int64(1); i <= done.begun.Load(); i++ {
					if !numbers[i] {
						t.Errorf("no transaction has the number %d of %d", i, done.begun.Load())
					}
				}
				if len(numbers) != int(done.begun.Load()) {
					t.Errorf("%d numbers, and %d transactions were begun", len(numbers), done.begun.Load())
				}
			})
		})
	}
}

// spent is what was acknowledged.
type spent struct{ actions, value, begun atomic.Int64 }

// spends does what one of many does at once for the value: it charges, alone or in a batch, by token or by key, or begins and commits or
// rolls back. It says whether there was room.
func (w tenant) spends(t *testing.T, s *Store, g Grant, i int, value money.MicroUSD, done *spent) bool {
	caller := []Caller{byToken(g), w.byKey()}[i%2]
	var err error
	switch i % 8 {
	case 0, 1:
		_, err = s.Charge(t.Context(), caller, w.session.ID, Charge{Count: 1, Value: value})
	case 2, 3:
		charges := []BatchCharge{{w.session.ID, Charge{Count: 5, Value: value}}, {w.session.ID, Charge{Count: 1, Value: value}}}
		outcomes := must(s.ChargeBatch(t.Context(), caller, charges, nil))(t)
		if outcomes[0].Err == nil {
			done.actions.Add(5)
			done.value.Add(int64(value))
		}
		err = outcomes[1].Err
	default:
		err = w.transacts(t, s, g, i, value, done)
	}
	if reached := new(LimitError); errors.As(err, &reached) {
		if usage := reached.Usage; usage.ActionCount > usage.MaxActions || usage.ValueUsed+usage.ValueHeld > usage.MaxValue {
			t.Errorf("beyond a limit: %+v", usage)
		}
		return false
	}
	if err != nil {
		t.Error(err)
		return false
	}
	done.actions.Add(1)
	if i%8 == 4 && value > 1 { // it has given the value back, for smaller ones to take
		return false
	}
	done.value.Add(int64(value))
	return true
}

// transacts begins a transaction, and commits it or rolls it back.
func (w tenant) transacts(t *testing.T, s *Store, g Grant, i int, value money.MicroUSD, done *spent) error {
	held, err := s.Begin(t.Context(), g.AccessToken, w.beginning(value))
	if err != nil {
		return err
	}
	done.begun.Add(1)
	if i%8 == 4 && value > 1 {
		return errOf(s.Rollback(t.Context(), byToken(g), held.ID, Rollback{}))
	}
	committed, err := s.Commit(t.Context(), g.AccessToken, held.ID, Commit{})
	if committed.Value != value || committed.Overage != 0 {
		t.Errorf("%+v, %v", committed, err)
	}
	return err
}

// beginning is a transaction to begin in the tenant's session; alone is one without a session.
func (w tenant) beginning(value money.MicroUSD) NewTransaction {
	n := w.alone(value)
	n.Session = w.session.ID
	return n
}

func (w tenant) alone(value money.MicroUSD) NewTransaction {
	return NewTransaction{ActionType: "order.place", PreState: `{"stock":3}`, Value: value, Lifetime: time.Hour}
}

// begin begins a transaction in the tenant's session.
func (w tenant) begin(t *testing.T, s *Store, token AccessToken, value money.MicroUSD) Transaction {
	t.Helper()
	return must(s.Begin(t.Context(), token, w.beginning(value)))(t)
}

// letPass moves what is stored of pending transactions as if their time had been up for a second.
func (w tenant) letPass(t *testing.T, s *Store, transactions ...Transaction) {
	t.Helper()
	past := time.Now().Add(-time.Second).UnixMilli()
	client := peek(t, s)
	for _, one := range transactions {
		must(client.HSet(t.Context(), s.keys.Transaction(one.Agent, one.ID), "x", past).Result())(t)
		if one.Session == uuid.Nil {
			continue
		}
		hold := redis.Z{Score: float64(past), Member: string(one.ID[:]) + strconv.FormatInt(int64(one.Hold), 10)}
		must(client.ZAddXX(t.Context(), s.keys.Holds(one.Agent, one.Session), hold).Result())(t)
		must(client.HSet(t.Context(), s.keys.Session(one.Agent, one.Session), "hx", past).Result())(t)
	}
}

// letSessionPass moves what is stored of the tenant's session as if its lifetime had been over for a second.
func (w tenant) letSessionPass(t *testing.T, s *Store) {
	t.Helper()
	past := time.Now().Add(-time.Second).UnixMilli()
	must(peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "x", past).Result())(t)
}

// wantUsage checks how far the limits of the tenant's session are used.
func (w tenant) wantUsage(t *testing.T, s *Store, want Usage) {
	t.Helper()
	if got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage; got != want {
		t.Errorf("the session has %+v, want %+v", got, want)
	}
}

// wantTransaction checks a transaction as it was answered, as it is read and as it is listed.
func (w tenant) wantTransaction(t *testing.T, s *Store, g Grant, answered, want Transaction) {
	t.Helper()
	if !reflect.DeepEqual(answered, want) {
		t.Errorf("answered %+v, want %+v", answered, want)
	}
	listed := want
	listed.PreState, listed.PostState, listed.Metadata = "", "", ""
	for _, caller := range []Caller{w.byKey(), byToken(g)} {
		if read := must(s.Transaction(t.Context(), caller, want.ID))(t); !reflect.DeepEqual(read, want) {
			t.Errorf("read %+v, want %+v", read, want)
		}
		all := w.listedTransactions(t, s, caller, Query{Limit: 200})
		i := slices.IndexFunc(all, func(one Transaction) bool { return one.ID == want.ID })
		if i < 0 || !reflect.DeepEqual(all[i], listed) {
			t.Errorf("listed %+v, want %+v", all, listed)
		}
	}
}

// listedTransactions follows a query to its last page.
func (w tenant) listedTransactions(t *testing.T, s *Store, c Caller, q Query) []Transaction {
	t.Helper()
	var all []Transaction
	for range 1000 {
		page := must(s.Transactions(t.Context(), c, q))(t)
		if len(page.Items) > q.Limit {
			t.Fatalf("%d transactions on a page of %d", len(page.Items), q.Limit)
		}
		all = append(all, page.Items...)
		if page.Next == uuid.Nil {
			return all
		}
		q.Before = page.Next
	}
	t.Fatal("the pages do not end")
	return nil
}

func TestARefusedBeginSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for what, test := range map[string]struct {
			session       NewSession
			limits        AgentLimits
			value         money.MicroUSD
			actions, left int64 // of value
		}{
			"actions":    {NewSession{MaxActions: 1, MaxValue: 100}, AgentLimits{}, 1, 0, 90},
			"value":      {NewSession{MaxActions: 9, MaxValue: 100}, AgentLimits{}, 91, 8, 90},
			"committed":  {NewSession{MaxActions: 9, MaxValue: 100, MaxCommitted: new(money.MicroUSD(40))}, AgentLimits{}, 31, 8, 30},
			"per action": {NewSession{MaxActions: 9, MaxValue: 100, MaxPerAction: new(money.MicroUSD(15))}, AgentLimits{}, 16, 8, 15},
			"per day":    {NewSession{MaxActions: 9, MaxValue: 100}, perDay(25), 16, 1, 15},
		} {
			w := limitedTenant(t, s, test.limits, test.session)
			token := w.exchange(t, s).AccessToken
			must(s.Begin(t.Context(), token, w.beginning(10)))(t)
			_, err := s.Begin(t.Context(), token, w.beginning(test.value))
			actions, value, known := Left(Needing(err, 1, test.value))
			if !known || actions != test.actions || int64(value) != test.left {
				t.Errorf("%s: %v leaves %d actions and %d, %t", what, err, actions, value, known)
			}
			if actions > 0 {
				must(s.Begin(t.Context(), token, w.beginning(value)))(t)
			}
		}
		if _, _, known := Left(&AgentLimitError{Limit: LimitActionsPerMinute}); known {
			t.Error("a limit of actions a minute leaves value")
		}
	})
}
