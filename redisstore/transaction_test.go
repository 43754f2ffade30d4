package redisstore

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

func TestARefusedBeginChangesNothing(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 3, MaxValue: money.USD}, func(t *testing.T, s *Store, w tenant) {
		token := w.exchange(t, s).AccessToken
		foreign := newTenant(t, s, NewSession{MaxActions: 5, MaxValue: money.USD})
		neighbour := putAgent(t, s, w.key, NewID(w.agent.ID))
		neighbours := must(s.CreateSession(t.Context(), w.key,
			NewSession{Agent: neighbour.Agent, MaxActions: 5, Lifetime: time.Hour}))(t)
		for name, session := range map[string]uuid.UUID{
			"an unknown session":                       NewID(w.agent.ID),
			"an unknown session in another cell":       otherCell(w.agent.ID),
			"another organization's session":           foreign.session.ID,
			"another agent's session in the same cell": neighbours.ID,
		} {
			wantUnchanged(t, s, name, func() {
				n := w.beginning(0)
				n.Session = session
				begun, err := s.Begin(t.Context(), token, n)
				wantError(t, name, err, ErrUnknownSession)
				wantEqual(t, name, begun, Transaction{})
			})
		}
	})
}

// A session's overage stops where Redis's Lua counts no further.
func TestOverageStopsWhereItWouldBecomeInexact(t *testing.T) {
	t.Parallel()
	const most = 1<<53 - 1
	for _, test := range []struct{ before, cost, after, undone money.MicroUSD }{
		{most - 7, 7, most, most - 7},
		{most - 7, 8, most, most - 8},
		{most - 7, money.Max, most, most - money.Max},
	} {
		eachRedis(t, Config{}, func(t *testing.T, s *Store) {
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
			wantEqual(t, "what is left when it is rolled back", must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).ValueOverage, test.undone)
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
		wantEqual(t, "what is left", must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).ValueOverage, 0)
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
		wantGone(t, s, session)
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
		var forGood, timed []string
		for _, key := range keysKept(t, s) {
			kind, _, _ := strings.Cut(strings.TrimPrefix(key, s.config.Prefix), ":")
			if must(peek(t, s).PTTL(t.Context(), key).Result())(t) < 0 {
				forGood = append(forGood, kind)
			} else if !slices.Contains(timed, kind) {
				timed = append(timed, kind)
			}
		}
		slices.Sort(forGood)
		slices.Sort(timed)
		wantEqual(t, "what stands for good", forGood, []string{"a", "ev", "o", "oa", "oo", "os", "ot"})
		wantEqual(t, "what is for a time", timed, []string{"af", "as", "at", "f", "i", "s", "sh", "stx", "t"})
	})
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
	wantEqual(t, "what the session has", must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage, want)
}

// wantTransaction checks a transaction as it is read and as it is listed.
func (w tenant) wantTransaction(t *testing.T, s *Store, g Grant, want Transaction) {
	t.Helper()
	listed := want
	listed.PreState, listed.PostState, listed.Metadata = "", "", ""
	for _, caller := range []Caller{w.byKey(), byToken(g)} {
		wantEqual(t, "what is read", must(s.Transaction(t.Context(), caller, want.ID))(t), want)
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
	all, _ := followed(t, q, func(q Query) (Page[Transaction], error) { return s.Transactions(t.Context(), c, q) }, nil)
	return all
}

func TestARefusedBeginSaysWhatIsLeft(t *testing.T) {
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
