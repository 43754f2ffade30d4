package redisstore

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/event"
	"remit/money"
	"remit/test/redistest"
)

// leasing describes a session of 10 actions and 100 micro-USD that allows leases of up to a minute.
var leasing = NewSession{MaxActions: 10, MaxValue: 100, MaxLease: time.Minute}

func (w tenant) lease(t *testing.T, s *Store, actions int64, value money.MicroUSD) Lease {
	t.Helper()
	n := NewLease{MaxActions: actions, MaxValue: value, Lifetime: time.Minute}
	return must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, n))(t)
}

func (w tenant) settle(t *testing.T, s *Store, id uuid.UUID, actions int64, value money.MicroUSD) Settlement {
	t.Helper()
	return *must(s.SettleLease(t.Context(), w.byKey(), id, NewSettlement{ActionCount: actions, ValueUsed: value}))(t).Settlement
}

// letLeasePass moves what is stored of leases as if their time had been up for a second.
func (w tenant) letLeasePass(t *testing.T, s *Store, leases ...Lease) {
	t.Helper()
	past := time.Now().Add(-time.Second).UnixMilli()
	client := peek(t, s)
	for _, l := range leases {
		must(client.HSet(t.Context(), s.keys.Lease(l.Agent, l.ID), "x", past).Result())(t)
		must(client.ZAddXX(t.Context(), s.keys.Leases(l.Agent, l.Session), redis.Z{Score: float64(past), Member: openLease(l)}).Result())(t)
		must(client.HSet(t.Context(), s.keys.Session(l.Agent, l.Session), "hx", past).Result())(t)
	}
}

func openLease(l Lease) string {
	return string(l.ID[:]) + strconv.FormatInt(l.MaxActions, 10) + " " + strconv.FormatInt(int64(l.MaxValue), 10)
}

// wantState checks how far the tenant's session is used, and that the leased value is the sum of its open leases.
func (w tenant) wantState(t *testing.T, s *Store, actions int64, used, held, overage money.MicroUSD) {
	t.Helper()
	got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
	if got.ActionCount != actions || got.ValueUsed != used || got.ValueHeld != held || got.ValueOverage != overage ||
		got.ValueCommitted < used {
		t.Errorf("the session is %+v, want %d actions, %d used, %d held, %d overage", got, actions, used, held, overage)
	}
	listed := must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10}))(t).Items
	i := slices.IndexFunc(listed, func(v SessionSummary) bool { return v.ID == w.session.ID })
	if i < 0 || listed[i] != summaryOf(got) {
		t.Errorf("listed are %+v, read was %+v", listed, got)
	}
	w.wantLeasesAsStored(t, s)
}

// wantLeasesAsStored checks that what is leased is the sum of the open leases, and that none of them expires unseen.
func (w tenant) wantLeasesAsStored(t *testing.T, s *Store) {
	t.Helper()
	fields := must(peek(t, s).HGetAll(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
	open := must(peek(t, s).ZRangeWithScores(t.Context(), s.keys.Leases(w.agent.ID, w.session.ID), 0, -1).Result())(t)
	sum := 0
	for _, lease := range open {
		_, value, _ := splitAt(lease.Member.(string)[16:])
		sum += value
	}
	if len(open) == 0 {
		if fields["lv"] != "" {
			t.Errorf("without a lease, %q is leased", fields["lv"])
		}
		return
	}
	if fields["lv"] != strconv.Itoa(sum) || fields["h"] == "" {
		t.Errorf("%q is leased and %q held, the leases are %d", fields["lv"], fields["h"], sum)
	}
	if until := must(strconv.ParseFloat(fields["hx"], 64))(t); until > open[0].Score {
		t.Errorf("the next check is at %.0f, the first lease expires at %.0f", until, open[0].Score)
	}
}

func splitAt(text string) (actions, value int, err error) {
	for i := range text {
		if text[i] == ' ' {
			actions, _ = strconv.Atoi(text[:i])
			value, err = strconv.Atoi(text[i+1:])
		}
	}
	return actions, value, err
}

func TestASessionHasAtMost100OpenLeases(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 100, MaxLease: time.Minute})
		var leases []Lease
		for range 100 {
			leases = append(leases, w.lease(t, s, 1, 0))
		}
		refuse := func() {
			t.Helper()
			before := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			for _, partial := range []bool{false, true} {
				_, err := s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 1, Lifetime: time.Second, Partial: partial})
				wantError(t, "lease 101", err, &LimitError{"max_open_leases", before.Usage})
			}
		}
		refuse()
		renewal := NewSettlement{ActionCount: 1, Renew: &NewLease{MaxActions: 1, Lifetime: time.Minute}}
		if renewed := must(s.SettleLease(t.Context(), w.byKey(), leases[0].ID, renewal))(t).Settlement.Renewed; renewed == nil {
			t.Error("at the bound no lease is renewed")
		}
		refuse()
		w.settle(t, s, leases[1].ID, 0, 0)
		w.lease(t, s, 1, 0)
		refuse()
		w.letLeasePass(t, s, leases[2])
		w.lease(t, s, 1, 0)
		refuse()
	})
}

// What was leased may be spent whatever becomes of the agent; what goes beyond it, or beyond what its actions may cost, is overage.
func TestASettlementChargesWhatWasSpent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		others      Charge                           // since the grant of 4 actions and 40
		over        func(*testing.T, *Store, tenant) // what became of the session since; nil for nothing
		actions     int64
		value       money.MicroUSD
		overActions int64
		overage     money.MicroUSD
		perAction   money.MicroUSD // max_value_usd_per_action when it is settled, 0 for none
		charged     money.MicroUSD // of the overage
	}{
		{name: "the agent is revoked", over: agentIsRevoked, actions: 5, value: 30, overActions: 1},
		{name: "as much as its actions may", actions: 4, value: 40, perAction: 10},
		{name: "more than its actions may", actions: 3, value: 40, perAction: 10, overage: 10, charged: 10},
		{name: "value without an action", value: 7, perAction: 10, overage: 7, charged: 7},
		{name: "more than its actions may, and than fits", others: Charge{Count: 4, Value: 50}, actions: 4, value: 77, perAction: 10, overage: 37, charged: 10},
		{name: "more than fits, as its actions may", others: Charge{Count: 4, Value: 50}, actions: 4, value: 77, perAction: 20, overage: 27},
		{name: "more than its actions may, after the session", over: sessionEnds, actions: 1, value: 45, perAction: 10, overage: 35, charged: 30},
	} {
		for _, late := range []bool{false, true} {
			t.Run(test.name+" late "+strconv.FormatBool(late), func(t *testing.T) {
				t.Parallel()
				onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
					w := newTenant(t, s, leasing)
					l := w.lease(t, s, 4, 40)
					if test.others.Count > 0 {
						must(s.Charge(t.Context(), w.byKey(), w.session.ID, test.others))(t)
					}
					if late {
						w.letLeasePass(t, s, l)
						w.wantState(t, s, 4+test.others.Count, 40+test.others.Value, 0, 0)
						w.wantEvents(t, s, "lease.expired", 1)
					}
					if test.perAction > 0 {
						must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{PerAction: LimitChange{true, new(int64(test.perAction))}}))(t)
					}
					if test.over != nil {
						test.over(t, s, w)
					}
					trail := w.follow(s)
					trail(t)
					got := w.settle(t, s, l.ID, test.actions, test.value)
					want := Settlement{ActionCount: test.actions, ValueUsed: test.value, OverageActions: test.overActions,
						Overage: test.overage, ChargedOverage: test.charged, Late: late, Settled: got.Settled}
					if got != want {
						t.Errorf("settled with %+v, want %+v", got, want)
					}
					charged, value := test.actions-test.overActions, test.value-test.overage+test.charged
					w.wantState(t, s, test.others.Count+charged, test.others.Value+value, 0, test.overage)
					wantSettledEvent(t, trail(t), l, want)
					read := must(s.Lease(t.Context(), w.byKey(), l.ID))(t)
					if read.Status != LeaseSettled || *read.Settlement != want {
						t.Errorf("read is %+v", read)
					}
				})
			})
		}
	}
}

func sessionEnds(t *testing.T, s *Store, w tenant) {
	t.Helper()
	must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
}

func agentIsRevoked(t *testing.T, s *Store, w tenant) {
	t.Helper()
	must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
}

func wantSettledEvent(t *testing.T, events []Event, l Lease, want Settlement) {
	t.Helper()
	for _, e := range events {
		if e.Type != "lease.settled" {
			continue
		}
		data := event.Data{
			Actions: new(want.ActionCount - want.OverageActions), Late: want.Late,
			Charged: new(want.ValueUsed - want.Overage + want.ChargedOverage), Overage: &want.Overage,
		}
		if want.OverageActions > 0 {
			data.OverageActions = &want.OverageActions
		}
		if e.Lease != l.ID || e.Session != l.Session || !reflect.DeepEqual(e.Data, data) {
			t.Errorf("the event is %+v", e)
		}
		return
	}
	t.Errorf("no settlement is among %+v", events)
}

func TestALeaseIsSettledOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, leasing)
		ctx, l := t.Context(), w.lease(t, s, 4, 40)
		n := NewSettlement{ActionCount: 2, ValueUsed: 20, Renew: &NewLease{MaxActions: 1, MaxValue: 10, Lifetime: time.Second}}
		first := must(s.SettleLease(ctx, w.byKey(), l.ID, n))(t)
		w.wantState(t, s, 3, 20, 10, 0)
		again := must(s.SettleLease(ctx, w.byKey(), l.ID, n))(t)
		if !again.Settlement.Repeated {
			t.Error("it is settled twice")
		}
		again.Settlement.Repeated = false
		if !reflect.DeepEqual(first, again) {
			t.Errorf("settled %+v, then %+v", first.Settlement, again.Settlement)
		}
		for _, other := range []NewSettlement{{ActionCount: 3, ValueUsed: 20}, {ActionCount: 2, ValueUsed: 21}, {}} {
			_, err := s.SettleLease(ctx, w.byKey(), l.ID, other)
			wantError(t, "with other numbers", err, ErrLeaseSettled)
		}
		w.wantState(t, s, 3, 20, 10, 0)
	})
}

func TestARenewalOfARevokedAgentIsRefusedAndTheSettlementStands(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, leasing)
		l := w.lease(t, s, 4, 40)
		agentIsRevoked(t, s, w)
		renew := NewLease{MaxActions: 1, Lifetime: time.Second}
		if _, err := s.GrantLease(t.Context(), w.byKey(), w.session.ID, renew); err == nil {
			t.Error("another lease is granted")
		}
		got := *must(s.SettleLease(t.Context(), w.byKey(), l.ID, NewSettlement{ActionCount: 1, ValueUsed: 10, Renew: &renew}))(t).Settlement
		if want := (Settlement{ActionCount: 1, ValueUsed: 10, Settled: got.Settled, Refusal: "session_not_active"}); got != want {
			t.Errorf("settled with %+v, want %+v", got, want)
		}
		w.wantState(t, s, 1, 10, 0, 0)
	})
}

func TestALeaseIsOfOneAgentAlone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, leasing), newTenant(t, s, leasing)
		l, grant := w.lease(t, s, 1, 1), w.exchange(t, s)
		strange := other.exchange(t, s)
		for name, c := range map[string]Caller{"another agent": byToken(strange), "another organization": other.byKey()} {
			_, err := s.Lease(t.Context(), c, l.ID)
			wantError(t, "Lease by "+name, err, ErrUnknownLease)
			_, err = s.SettleLease(t.Context(), c, l.ID, NewSettlement{})
			wantError(t, "SettleLease by "+name, err, ErrUnknownLease)
			_, err = s.GrantLease(t.Context(), c, w.session.ID, NewLease{MaxActions: 1, Lifetime: time.Second})
			wantError(t, "GrantLease by "+name, err, ErrUnknownSession)
		}
		for _, c := range []Caller{w.byKey(), byToken(grant)} {
			_, err := s.Lease(t.Context(), c, NewID(w.agent.ID))
			wantError(t, "Lease of none", err, ErrUnknownLease)
			_, err = s.SettleLease(t.Context(), c, NewID(w.agent.ID), NewSettlement{})
			wantError(t, "SettleLease of none", err, ErrUnknownLease)
		}
		w.wantState(t, s, 1, 0, 1, 0)
		agentIsRevoked(t, s, w)
		_, err := s.SettleLease(t.Context(), byToken(grant), l.ID, NewSettlement{})
		wantError(t, "SettleLease of a revoked agent", err, ErrInvalidToken)
		_, err = s.Lease(t.Context(), byToken(grant), l.ID)
		wantError(t, "Lease of a revoked agent", err, ErrInvalidToken)
		w.settle(t, s, l.ID, 1, 1)
	})
}

// Time that steps makes a lease neither open again nor lost.
func TestALeaseThatExpiredStaysSoThoughTheClockGoesBack(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100, MaxLease: time.Minute, Lifetime: 24 * time.Hour})
		l := w.lease(t, s, 4, 40)
		step(2 * time.Minute)
		w.wantState(t, s, 4, 40, 0, 0)
		step(0)
		w.wantState(t, s, 4, 40, 0, 0)
		if read := must(s.Lease(t.Context(), w.byKey(), l.ID))(t); read.Status != Expired {
			t.Errorf("it is %s", read.Status)
		}
		fresh := w.lease(t, s, 1, 10)
		step(-3 * time.Hour)
		w.wantState(t, s, 5, 40, 10, 0)
		if late := w.settle(t, s, l.ID, 1, 5); !late.Late {
			t.Error("it is not late")
		}
		if w.settle(t, s, fresh.ID, 1, 10).Late {
			t.Error("the other one is late")
		}
		w.wantState(t, s, 2, 15, 0, 0)
	})
}

// A holder whose answer is lost repeats the same numbers, at any instance.
func TestASettlementWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, leasing)
		l := w.lease(t, s, 4, 40)
		n := NewSettlement{ActionCount: 1, ValueUsed: 10, Renew: &NewLease{MaxActions: 2, MaxValue: 20, Lifetime: time.Minute}}
		must(s.SettleLease(t.Context(), w.byKey(), w.lease(t, s, 1, 1).ID, NewSettlement{}))(t) // the scripts are known
		p.LoseReplies(settleLease.SHA(), 100)
		_, err := s.SettleLease(t.Context(), w.byKey(), l.ID, n)
		p.LoseReplies("", 0)
		if !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("its answer was not lost: %v", err)
		}
		settled := must(s.SettleLease(t.Context(), w.byKey(), l.ID, n))(t)
		if settled.Settlement.Renewed == nil || settled.Settlement.Renewed.MaxValue != 20 {
			t.Errorf("settled with %+v", settled.Settlement)
		}
		w.wantState(t, s, 3, 10, 20, 0)
	})
}
