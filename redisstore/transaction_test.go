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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 3, MaxValue: money.USD})
		grant, revoked := w.exchange(t, s), w.exchange(t, s)
		token := grant.AccessToken
		if err := s.RevokeFamily(t.Context(), token, revoked.Family); err != nil {
			t.Fatal(err)
		}
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
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

func TestAnInaccessibleTransactionLooksUnknown(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 10}), newTenant(t, s, NewSession{MaxActions: 10})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), dead.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		alone := must(s.Begin(t.Context(), grant.AccessToken, w.alone(0)))(t)
		mine := []uuid.UUID{w.begin(t, s, grant.AccessToken, 0).ID, alone.ID}
		none := []uuid.UUID{NewID(w.agent.ID), otherCell(w.agent.ID), w.session.ID, w.agent.ID, uuid.Nil}
		for _, test := range []struct {
			name   string
			caller Caller
			ids    []uuid.UUID
			want   error
		}{
			{"its own agent, of none", byToken(grant), none, ErrUnknownTransaction},
			{"its organization, of none", w.byKey(), none, ErrUnknownTransaction},
			{"another organization", foreign.byKey(), append(mine, none...), ErrUnknownTransaction},
			{"another organization's agent", byToken(foreign.exchange(t, s)), append(mine, none...), ErrUnknownTransaction},
			{"an agent of the same cell", byToken(putAgent(t, s, w.key, NewID(w.agent.ID))), mine, ErrUnknownTransaction},
			{"an agent of another cell", byToken(putAgent(t, s, w.key, otherCell(w.agent.ID))), mine, ErrUnknownTransaction},
			{"a revoked family", byToken(dead), append(mine, none...), ErrInvalidToken},
			{"a wrong key", Caller{Key: &APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}}, append(mine, none...), ErrInvalidAPIKey},
		} {
			wantUnchanged(t, s, test.name, func() {
				for _, id := range test.ids {
					_, err := s.Transaction(t.Context(), test.caller, id)
					wantError(t, "Transaction by "+test.name, err, test.want)
					_, err = s.Rollback(t.Context(), test.caller, id, Rollback{})
					wantError(t, "Rollback by "+test.name, err, test.want)
					if test.caller.Token != nil {
						_, err = s.Commit(t.Context(), *test.caller.Token, id, Commit{})
						wantError(t, "Commit by "+test.name, err, test.want)
					}
				}
			})
		}
	})
}

func TestTransactionsOfARevokedAgentAreForItsOrganizationToRollBack(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		begun := w.begin(t, s, grant.AccessToken, 40)
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		wantUnchanged(t, s, "by its token", func() {
			_, err := s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{})
			wantError(t, "Commit", err, ErrInvalidToken)
			_, err = s.Rollback(t.Context(), byToken(grant), begun.ID, Rollback{})
			wantError(t, "Rollback", err, ErrInvalidToken)
		})
		undone := must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		if session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); undone.Status != RolledBack || session.ValueHeld != 0 {
			t.Errorf("%+v, %+v", undone, session)
		}
	})
}

// The status is read from the session's end, so it holds for as long as the transaction can be read, whatever of the
// session is kept.
func TestEndingASessionRollsBackWhatIsPending(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		pending, expired := w.begin(t, s, grant.AccessToken, 30), w.begin(t, s, grant.AccessToken, 20)
		committed := w.begin(t, s, grant.AccessToken, 10)
		must(s.Commit(t.Context(), grant.AccessToken, committed.ID, Commit{}))(t)
		w.letPass(t, s, expired)
		ended := must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		if session.ValueHeld != 0 || session.ValueUsed != 10 {
			t.Errorf("%+v", session)
		}
		want := map[uuid.UUID]Status{pending.ID: RolledBack, expired.ID: Expired, committed.ID: Committed}
		w.wantStatuses(t, s, grant, want, ended)

		must(peek(t, s).HSet(t.Context(), s.keys.Transaction(w.agent.ID, pending.ID), "x", ended.Add(time.Millisecond).UnixMilli()).Result())(t)
		w.wantStatuses(t, s, grant, want, ended) // though its own time is up as well by now

		must(peek(t, s).Del(t.Context(), s.keys.Session(w.agent.ID, w.session.ID),
			s.keys.Transaction(w.agent.ID, expired.ID)).Result())(t) // which are kept as long or shorter
		delete(want, expired.ID)
		w.wantStatuses(t, s, grant, want, time.Time{})
		wantUnchanged(t, s, "settling what is settled", func() {
			_, err := s.Commit(t.Context(), grant.AccessToken, pending.ID, Commit{})
			wantError(t, "Commit", err, &NotPendingError{RolledBack})
		})
		undone := must(s.Rollback(t.Context(), w.byKey(), committed.ID, Rollback{}))(t)
		if undone.Status != RolledBack {
			t.Errorf("%+v", undone)
		}
		for _, key := range keysKept(t, s) {
			if key == s.keys.Session(w.agent.ID, w.session.ID) {
				t.Error("the session is back")
			}
		}
	})
}

func TestTransactionsAndWhatTheyNeedStayForTheRetention(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: 48 * time.Hour}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100, Lifetime: time.Hour})
		token, agent, session := w.exchange(t, s).AccessToken, w.agent.ID, w.session.ID
		ttls := func(kept map[string]time.Duration) {
			t.Helper()
			for key, want := range kept {
				wantTTL(t, s, key, want*time.Hour)
			}
		}
		begin := func(lifetime time.Duration) Transaction {
			n := w.beginning(10)
			n.Lifetime = lifetime * time.Hour
			return must(s.Begin(t.Context(), token, n))(t)
		}
		long := begin(5) // longer than the session
		short := begin(2)
		ttls(map[string]time.Duration{
			s.keys.Session(agent, session): 53, s.keys.Holds(agent, session): 53, s.keys.SessionTransactions(agent, session): 53,
			s.keys.AgentTransactions(agent): 53, s.keys.AgentSessions(agent): 53,
			s.keys.Transaction(agent, long.ID): 53, s.keys.Transaction(agent, short.ID): 50,
		})
		must(s.Commit(t.Context(), token, short.ID, Commit{}))(t)
		must(s.Rollback(t.Context(), w.byKey(), long.ID, Rollback{}))(t)
		ttls(map[string]time.Duration{
			s.keys.Session(agent, session): 53, s.keys.SessionTransactions(agent, session): 53, s.keys.AgentTransactions(agent): 53,
			s.keys.Transaction(agent, long.ID): 48, s.keys.Transaction(agent, short.ID): 48,
		})

		// Settled late, when what was kept with it has nearly run out.
		late := begin(1)
		for _, settle := range []func() (Transaction, error){
			func() (Transaction, error) { return s.Commit(t.Context(), token, late.ID, Commit{}) },
			func() (Transaction, error) { return s.Rollback(t.Context(), w.byKey(), late.ID, Rollback{}) },
		} {
			kept := []string{s.keys.Transaction(agent, late.ID), s.keys.SessionTransactions(agent, session), s.keys.AgentTransactions(agent)}
			for _, key := range kept {
				must(peek(t, s).PExpire(t.Context(), key, time.Hour).Result())(t)
			}
			must(settle())(t)
			for _, key := range kept {
				wantTTL(t, s, key, 48*time.Hour)
			}
		}

		alone := w.alone(0)
		alone.Lifetime = 30 * time.Hour
		ttls(map[string]time.Duration{
			s.keys.Transaction(agent, must(s.Begin(t.Context(), token, alone))(t).ID): 78, s.keys.AgentTransactions(agent): 78,
		})
	})
}

// A replay returns the transaction, so the transaction is kept at least as long as the outcome.
func TestATransactionSettledByAnIdempotencyKeyIsKeptForItsReplay(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: time.Hour}, func(t *testing.T, s *Store) {
		for name, settle := range map[string]func(tenant, AccessToken, uuid.UUID, *Idempotency) error{
			"commit": func(_ tenant, token AccessToken, id uuid.UUID, idem *Idempotency) error {
				_, err := s.Commit(t.Context(), token, id, Commit{Idempotency: idem})
				return err
			},
			"rollback": func(w tenant, _ AccessToken, id uuid.UUID, idem *Idempotency) error {
				_, err := s.Rollback(t.Context(), w.byKey(), id, Rollback{Idempotency: idem})
				return err
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
		_, err := s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{})
		wantError(t, "Rollback", err, ErrUnknownTransaction)
	})
}

func TestATransactionExpiresByItself(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		n := w.beginning(60)
		n.Lifetime = 30 * time.Millisecond
		begun := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
		eventually(t, "it has expired", func() bool {
			return must(s.Transaction(t.Context(), byToken(grant), begun.ID))(t).Status == Expired
		})
		begun.Status, begun.Held = Expired, 0
		w.wantTransaction(t, s, grant, must(s.Transaction(t.Context(), w.byKey(), begun.ID))(t), begun)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 100}))(t)
	})
}

// Only permanent objects have no TTL: organizations, agents, their indexes and trails.
func TestNothingIsKeptForGoodThatBelongsToASession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
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

// Begins, charges and commits at once from two instances of the service fill a session exactly, and not beyond.
func TestTransactionsAtOnceFillALimitExactly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		session NewSession
	}{
		{"actions", NewSession{MaxActions: 503, MaxValue: money.Max}},
		{"value", NewSession{MaxActions: 1_000_000, MaxValue: 2_003}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, test.session)
				second := must(Open(s.config))(t)
				defer second.Close()
				grant := w.exchange(t, s)
				var actions, value, begun atomic.Int64 // acknowledged
				var wg sync.WaitGroup
				for i := range 64 {
					store := []*Store{s, second}[i%2]
					wg.Go(func() {
						for _, hold := range []money.MicroUSD{11, 3, 1} {
							for w.fits(t, store, grant, i, hold, &actions, &value, &begun) {
							}
						}
					})
				}
				wg.Wait()

				usage := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage
				if usage.ActionCount != actions.Load() || int64(usage.ValueUsed) != value.Load() || usage.ValueHeld != 0 {
					t.Errorf("%d actions and %d were acknowledged, and %+v is stored", actions.Load(), value.Load(), usage)
				}
				if usage.ActionCount != usage.MaxActions && usage.ValueUsed != usage.MaxValue {
					t.Errorf("neither limit is filled: %+v", usage)
				}
				numbers := map[int64]bool{}
				for _, one := range w.listedTransactions(t, s, w.byKey(), Query{Limit: 200, Session: w.session.ID}) {
					numbers[one.Sequence] = true
				}
				for i := int64(1); i <= begun.Load(); i++ {
					if !numbers[i] {
						t.Errorf("no transaction has the number %d of %d", i, begun.Load())
					}
				}
				if len(numbers) != int(begun.Load()) {
					t.Errorf("%d numbers, and %d transactions were begun", len(numbers), begun.Load())
				}
			})
		})
	}
}

// fits does what one of many does at once: charges, or begins and commits, for the value. It says whether there was room.
func (w tenant) fits(t *testing.T, s *Store, g Grant, i int, value money.MicroUSD, actions, used, begun *atomic.Int64) bool {
	if i%4 == 3 {
		fits := chargeFits(t, s, byToken(g), w.session.ID, Charge{Count: 1, Value: value})
		if fits {
			actions.Add(1)
			used.Add(int64(value))
		}
		return fits
	}
	held, err := s.Begin(t.Context(), g.AccessToken, w.beginning(value))
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
	actions.Add(1)
	begun.Add(1)
	if i%4 == 2 && value > 1 { // gives back, for smaller ones to take
		if _, err := s.Rollback(t.Context(), byToken(g), held.ID, Rollback{}); err != nil {
			t.Error(err)
		}
		return false
	}
	committed, err := s.Commit(t.Context(), g.AccessToken, held.ID, Commit{})
	if err != nil || committed.Value != value || committed.Overage != 0 {
		t.Errorf("%+v, %v", committed, err)
	}
	used.Add(int64(value))
	return true
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

// wantStatuses checks the status of transactions as they are read and listed, and since when those that are rolled back
// are.
func (w tenant) wantStatuses(t *testing.T, s *Store, g Grant, want map[uuid.UUID]Status, rolledBack time.Time) {
	t.Helper()
	for _, caller := range []Caller{w.byKey(), byToken(g)} {
		all := w.listedTransactions(t, s, caller, Query{Limit: 200})
		if len(all) != len(want) {
			t.Errorf("%d are listed, want %d", len(all), len(want))
		}
		for _, one := range all {
			read := must(s.Transaction(t.Context(), caller, one.ID))(t)
			if one.Status != want[one.ID] || read.Status != want[one.ID] || one.Held != 0 || read.Held != 0 {
				t.Errorf("listed %+v, read %+v, want %s", one, read, want[one.ID])
			}
			since := time.Time{}
			if one.Status == RolledBack {
				since = rolledBack
			}
			if !one.RolledBack.Equal(since) || !read.RolledBack.Equal(since) {
				t.Errorf("listed as rolled back at %s, read as %s, want %s", one.RolledBack, read.RolledBack, since)
			}
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

// Where agents share a cell, a script could reach the transactions of both.
func TestATransactionIsUnknownToAnotherAgentOfItsCell(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9, MaxValue: 9})
		own, theirs := w.exchange(t, s), inCellOf(t, s, w.agent.ID).exchange(t, s)
		begun := must(s.Begin(t.Context(), own.AccessToken, NewTransaction{Session: w.session.ID, ActionType: "a", PreState: "{}", Value: 3, Lifetime: time.Minute}))(t)
		_, err := s.Commit(t.Context(), theirs.AccessToken, begun.ID, Commit{})
		wantError(t, "a commit", err, ErrUnknownTransaction)
		_, err = s.Rollback(t.Context(), byToken(theirs), begun.ID, Rollback{})
		wantError(t, "a rollback", err, ErrUnknownTransaction)
		_, err = s.ChangeHold(t.Context(), theirs.AccessToken, begun.ID, NewHold{Value: new(money.MicroUSD(1))})
		wantError(t, "a change of its hold", err, ErrUnknownTransaction)
		_, err = s.Transaction(t.Context(), byToken(theirs), begun.ID)
		wantError(t, "a read", err, ErrUnknownTransaction)
		if is := must(s.Transaction(t.Context(), byToken(own), begun.ID))(t); is.Status != Pending || is.Held != 3 {
			t.Errorf("it is %s and holds %d", is.Status, is.Held)
		}
	})
}
