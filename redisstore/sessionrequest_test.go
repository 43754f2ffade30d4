package redisstore

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// ask asks for more for the tenant's session.
func (w tenant) ask(t *testing.T, s *Store, by AccessToken, actions int64, value money.MicroUSD) SessionRequest {
	t.Helper()
	n := NewSessionRequest{AddActions: actions, AddValue: value, Reason: "the rest of the list"}
	return must(s.RequestMore(t.Context(), by, w.session.ID, n))(t)
}

func (w tenant) approve(t *testing.T, s *Store, id uuid.UUID, a Approval) SessionRequest {
	t.Helper()
	return must(s.ApproveRequest(t.Context(), w.key, w.session.ID, id, a))(t)
}

// wantLimits checks the limits of the tenant's session.
func (w tenant) wantLimits(t *testing.T, s *Store, actions int64, value money.MicroUSD) {
	t.Helper()
	got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
	if got.MaxActions != actions || got.MaxValue != value {
		t.Errorf("the limits are %d actions and %d, want %d and %d", got.MaxActions, got.MaxValue, actions, value)
	}
}

// readBoth returns a request as its agent and its organization read it alone and in the list, which must be the same.
func (w tenant) readBoth(t *testing.T, s *Store, by AccessToken, id uuid.UUID) SessionRequest {
	t.Helper()
	var first *SessionRequest
	for _, c := range []Caller{w.byKey(), {Token: &by}} {
		one := must(s.SessionRequest(t.Context(), c, w.session.ID, id))(t)
		one.NewestEvent, one.Remaining = "", 0
		found := false
		for _, listed := range must(s.SessionRequests(t.Context(), c, w.session.ID))(t) {
			listed.Remaining = 0
			found = found || reflect.DeepEqual(listed, one)
		}
		if !found || first != nil && !reflect.DeepEqual(*first, one) {
			t.Errorf("%+v is not read twice alike", one)
		}
		first = &one
	}
	return *first
}

func TestAnApprovalAddsWhatItGrantsOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		session  NewSession
		asked    NewSessionRequest
		approval Approval
		actions  int64 // granted
		value    money.MicroUSD
	}{
		{"all of both", NewSession{MaxActions: 10, MaxValue: 100}, NewSessionRequest{AddActions: 3, AddValue: 7}, Approval{}, 3, 7},
		{"actions alone", NewSession{MaxActions: 10, MaxValue: 100}, NewSessionRequest{AddActions: 3}, Approval{}, 3, 0},
		{"value alone", NewSession{MaxActions: 10, MaxValue: 100}, NewSessionRequest{AddValue: 7}, Approval{Comment: "once"}, 0, 7},
		{"less of both", NewSession{MaxActions: 10, MaxValue: 100}, NewSessionRequest{AddActions: 3, AddValue: 7},
			Approval{AddActions: new(int64(1)), AddValue: new(money.MicroUSD(6)), Comment: "half – “é” 2"}, 1, 6},
		{"one of both", NewSession{MaxActions: 10, MaxValue: 100}, NewSessionRequest{AddActions: 3, AddValue: 7},
			Approval{AddValue: new(money.MicroUSD(0))}, 3, 0},
		{"with a committed budget", NewSession{MaxActions: 10, MaxValue: 100, MaxCommitted: new(money.MicroUSD(102))},
			NewSessionRequest{AddActions: 3, AddValue: 7}, Approval{}, 3, 7},
		{"up to the bounds", NewSession{MaxActions: MostActions - 3, MaxValue: MostValue - 7},
			NewSessionRequest{AddActions: 3, AddValue: 7}, Approval{}, 3, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, test.session)
				g := w.exchange(t, s)
				more := test.asked
				more.Reason = "line one\nline two  with spaces 12 "
				asked := must(s.RequestMore(t.Context(), g.AccessToken, w.session.ID, more))(t)
				want := SessionRequest{ID: asked.ID, Session: w.session.ID, Agent: w.agent.ID, Status: Pending,
					AddActions: more.AddActions, AddValue: more.AddValue, Reason: more.Reason, Created: asked.Created}
				if !reflect.DeepEqual(asked, want) || !reflect.DeepEqual(w.readBoth(t, s, g.AccessToken, asked.ID), want) {
					t.Errorf("asked is %+v, want %+v", asked, want)
				}
				approved := w.approve(t, s, asked.ID, test.approval)
				want.Status, want.GrantedActions, want.GrantedValue = Approved, test.actions, test.value
				want.Comment, want.Decided = test.approval.Comment, approved.Decided
				if !reflect.DeepEqual(approved, want) || approved.Decided.Before(approved.Created) {
					t.Errorf("approved is %+v, want %+v", approved, want)
				}
				w.wantLimits(t, s, test.session.MaxActions+test.actions, test.session.MaxValue+test.value)
				want.Repeated = true
				if again := w.approve(t, s, asked.ID, test.approval); !reflect.DeepEqual(again, want) {
					t.Errorf("approved again is %+v, want %+v", again, want)
				}
				want.Repeated = false
				if read := w.readBoth(t, s, g.AccessToken, asked.ID); !reflect.DeepEqual(read, want) {
					t.Errorf("read is %+v, want %+v", read, want)
				}
				w.wantLimits(t, s, test.session.MaxActions+test.actions, test.session.MaxValue+test.value)
			})
		})
	}
}

func TestAnApprovedRequestLetsTheChargeThroughThatWasRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 10})
		g := w.exchange(t, s)
		charge := Charge{Count: 1, Value: 6}
		must(s.Charge(t.Context(), byToken(g), w.session.ID, charge))(t)
		var limit *LimitError
		if _, err := s.Charge(t.Context(), byToken(g), w.session.ID, charge); !errors.As(err, &limit) {
			t.Fatalf("the second charge: %v", err)
		}
		w.approve(t, s, w.ask(t, s, g.AccessToken, 1, 2).ID, Approval{})
		if got := must(s.Charge(t.Context(), byToken(g), w.session.ID, charge))(t); got.ActionCount != 2 || got.ValueUsed != 12 {
			t.Errorf("charged is %+v", got)
		}
	})
}

// Whatever is decided at once by two instances, one decision counts, and its amounts are added once.
func TestDecisionsAtOnceOverTwoInstancesCountOnce(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		second := must(Open(s.config))(t)
		defer second.Close()
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		asked := w.ask(t, s, w.exchange(t, s).AccessToken, 8, 80)
		var mu sync.Mutex
		won := map[string]int{}
		var all sync.WaitGroup
		for i := range 24 {
			store := []*Store{s, second}[i%2]
			all.Go(func() {
				decided, err := decide(t, store, w, asked.ID, i%3)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && !decided.Repeated:
					won[fmt.Sprint(decided.Status, decided.GrantedActions)]++
				case err != nil && !errors.Is(err, ErrRequestDecided):
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		all.Wait()
		found := must(s.SessionRequest(t.Context(), w.byKey(), w.session.ID, asked.ID))(t)
		if len(won) != 1 || won[fmt.Sprint(found.Status, found.GrantedActions)] != 1 {
			t.Errorf("the decisions are %v, the request is %+v", won, found)
		}
		w.wantLimits(t, s, 10+found.GrantedActions, 100+found.GrantedValue)
	})
}

// decide decides a request in one of three ways.
func decide(t *testing.T, s *Store, w tenant, id uuid.UUID, way int) (SessionRequest, error) {
	switch way {
	case 0:
		return s.DenyRequest(t.Context(), w.key, w.session.ID, id, "")
	case 1:
		return s.ApproveRequest(t.Context(), w.key, w.session.ID, id, Approval{})
	default:
		return s.ApproveRequest(t.Context(), w.key, w.session.ID, id, Approval{AddActions: new(int64(1)), AddValue: new(money.MicroUSD(1))})
	}
}

func TestADecisionThatCannotBeTakenLeavesTheRequestPending(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: MostActions - 2, MaxValue: MostValue - 6}), newTenant(t, s, NewSession{MaxActions: 1})
		g := w.exchange(t, s)
		id := w.ask(t, s, g.AccessToken, 3, 7).ID
		approve := func(a Approval) error {
			_, err := s.ApproveRequest(t.Context(), w.key, w.session.ID, id, a)
			return err
		}
		actions, value := new(int64(2)), new(money.MicroUSD(6)) // as much as the bounds leave
		wantError(t, "too many actions", approve(Approval{AddValue: value}), &AboveBoundsError{Limit: "max_actions"})
		wantError(t, "too much value", approve(Approval{AddActions: actions}), &AboveBoundsError{Limit: "max_value_usd"})
		wantError(t, "actions that were not asked for", approve(Approval{AddActions: new(int64(4))}), &AboveAskedError{"max_actions"})
		wantError(t, "value that was not asked for", approve(Approval{AddValue: new(money.MicroUSD(8))}), &AboveAskedError{"max_value_usd"})
		wantError(t, "nothing", approve(Approval{AddActions: new(int64(0)), AddValue: new(money.MicroUSD(0))}), ErrGrantsNothing)
		_, err := s.ApproveRequest(t.Context(), w.key, w.session.ID, NewID(w.agent.ID), Approval{})
		wantError(t, "another request", err, ErrUnknownRequest)
		_, err = s.DenyRequest(t.Context(), w.key, w.session.ID, NewID(w.agent.ID), "")
		wantError(t, "another request", err, ErrUnknownRequest)
		_, err = s.ApproveRequest(t.Context(), other.key, w.session.ID, id, Approval{})
		wantError(t, "by another organization", err, ErrUnknownSession)
		_, err = s.DenyRequest(t.Context(), other.key, w.session.ID, id, "")
		wantError(t, "by another organization", err, ErrUnknownSession)
		_, err = s.SessionRequest(t.Context(), byToken(other.exchange(t, s)), w.session.ID, id)
		wantError(t, "read by another organization's agent", err, ErrUnknownSession)
		_, err = s.RequestMore(t.Context(), other.exchange(t, s).AccessToken, w.session.ID, NewSessionRequest{AddActions: 1, Reason: "x"})
		wantError(t, "asked by another organization's agent", err, ErrUnknownSession)
		if got := w.readBoth(t, s, g.AccessToken, id); got.Status != Pending {
			t.Errorf("the request is %+v", got)
		}
		w.wantLimits(t, s, MostActions-2, MostValue-6)
	})
}

func TestRequestsEndWithTheirSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *Store, tenant) Status{
		"end": func(t *testing.T, s *Store, w tenant) Status {
			must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
			return Completed
		},
		"expiry": func(t *testing.T, s *Store, w tenant) Status {
			past := time.Now().Add(-time.Second).UnixMilli()
			must(peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "x", past).Result())(t)
			return Expired
		},
		"revocation": func(t *testing.T, s *Store, w tenant) Status {
			must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
			return Revoked
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 10})
				g := w.exchange(t, s)
				pending, approved := w.ask(t, s, g.AccessToken, 1, 0).ID, w.ask(t, s, g.AccessToken, 2, 0).ID
				denied := w.ask(t, s, g.AccessToken, 3, 0).ID
				first := w.approve(t, s, approved, Approval{})
				must(s.DenyRequest(t.Context(), w.key, w.session.ID, denied, "no"))(t)
				status := end(t, s, w)
				want := map[uuid.UUID]Status{pending: Lapsed, approved: Approved, denied: Denied}
				for _, listed := range must(s.SessionRequests(t.Context(), w.byKey(), w.session.ID))(t) {
					one := must(s.SessionRequest(t.Context(), w.byKey(), w.session.ID, listed.ID))(t)
					if listed.Status != want[listed.ID] || one.Status != listed.Status {
						t.Errorf("%+v is listed, %+v read, want %s", listed, one, want[listed.ID])
					}
					delete(want, listed.ID)
				}
				if len(want) > 0 {
					t.Errorf("not listed: %v", want)
				}
				_, err := s.ApproveRequest(t.Context(), w.key, w.session.ID, pending, Approval{})
				wantError(t, "an approval", err, &NotActiveError{status})
				_, err = s.DenyRequest(t.Context(), w.key, w.session.ID, pending, "")
				wantError(t, "a denial", err, &NotActiveError{status})
				if again := w.approve(t, s, approved, Approval{}); !again.Repeated || again.Decided != first.Decided {
					t.Errorf("approved again is %+v, first %+v", again, first)
				}
				n := NewSessionRequest{AddActions: 1, Reason: "x"}
				switch _, err = s.RequestMore(t.Context(), g.AccessToken, w.session.ID, n); status {
				case Revoked:
					wantError(t, "a new request", err, ErrInvalidToken)
				default:
					wantError(t, "a new request", err, &NotActiveError{status})
				}
			})
		})
	}
}

func TestASessionHasAtMostEightPendingRequestsAndKeeps32DecidedOnes(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 10})
		by := w.exchange(t, s).AccessToken
		var asked []uuid.UUID
		for range 8 {
			asked = append(asked, w.ask(t, s, by, 1, 0).ID)
		}
		full := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		_, err := s.RequestMore(t.Context(), by, w.session.ID, NewSessionRequest{AddActions: 1, Reason: "x"})
		wantError(t, "the ninth", err, &LimitError{"max_pending_requests", full.Usage})
		for len(asked) < 8+33 { // the first and the 33 after it but one are decided in turn
			id := asked[len(asked)-8]
			must(s.DenyRequest(t.Context(), w.key, w.session.ID, id, strings.Repeat("n", 50)))(t)
			asked = append(asked, w.ask(t, s, by, 1, 0).ID)
		}
		kept := must(s.SessionRequests(t.Context(), w.byKey(), w.session.ID))(t)
		if len(kept) != 40 {
			t.Fatalf("%d are kept", len(kept))
		}
		for i, one := range kept { // newest first, without the one decided first
			if want := asked[len(asked)-1-i]; one.ID != want && !sameMoment(kept, i) {
				t.Errorf("place %d has %s, want %s", i, one.ID, want)
			}
		}
		_, err = s.SessionRequest(t.Context(), w.byKey(), w.session.ID, asked[0])
		wantError(t, "the one decided first", err, ErrUnknownRequest)
		_, err = s.RequestMore(t.Context(), by, w.session.ID, NewSessionRequest{AddActions: 1, Reason: "x"})
		wantError(t, "one more", err, &LimitError{"max_pending_requests", full.Usage})
		if n := must(peek(t, s).HLen(t.Context(), s.keys.SessionRequests(w.agent.ID, w.session.ID)).Result())(t); n != 40+3 {
			t.Errorf("the hash has %d fields", n)
		}
	})
}

// sameMoment says whether the request at i was created in the same ms as a neighbour: their order is that of their ids.
func sameMoment(kept []SessionRequest, i int) bool {
	return i > 0 && kept[i-1].Created.Equal(kept[i].Created) || i+1 < len(kept) && kept[i+1].Created.Equal(kept[i].Created)
}

func TestARepeatedRequestWithAnIdempotencyKeyIsOne(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 10})
		by := w.exchange(t, s).AccessToken
		ask := func() (SessionRequest, *Idempotency) {
			n := NewSessionRequest{AddActions: 1, Reason: "x", Idempotency: &Idempotency{Key: "once"}}
			return must(s.RequestMore(t.Context(), by, w.session.ID, n))(t), n.Idempotency
		}
		first, _ := ask()
		must(s.DenyRequest(t.Context(), w.key, w.session.ID, first.ID, ""))(t)
		if again, idem := ask(); !reflect.DeepEqual(again, first) || !idem.Outcome.Replayed {
			t.Errorf("again is %+v, want %+v", again, first)
		}
		if kept := must(s.SessionRequests(t.Context(), w.byKey(), w.session.ID))(t); len(kept) != 1 {
			t.Errorf("kept are %+v", kept)
		}
	})
}

func TestRequestsLiveAsLongAsTheirSession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 10})
		id := w.ask(t, s, w.exchange(t, s).AccessToken, 1, 0).ID
		check := func(what string) {
			t.Helper()
			session := must(peek(t, s).PTTL(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
			requests := must(peek(t, s).PTTL(t.Context(), s.keys.SessionRequests(w.agent.ID, w.session.ID)).Result())(t)
			if requests <= 0 || session-requests > 2*time.Second {
				t.Errorf("%s: the session stays %s, its requests %s", what, session, requests)
			}
		}
		check("asked")
		long := 20 * 24 * time.Hour
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Lifetime: &long}))(t)
		check("lengthened")
		w.approve(t, s, id, Approval{})
		check("approved")
	})
}

// What is counted for requests is about what they take, and the same requests over and over are counted once.
func TestRequestsTakeTheMemoryThatIsCountedForThem(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{UsageEvery: time.Hour}, func(t *testing.T, s *Store) { // events are counted when it is synced
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 10})
		by := w.exchange(t, s).AccessToken
		round := func(n int) int64 {
			for range n {
				long := NewSessionRequest{AddActions: 1, Reason: strings.Repeat("é", 200)}
				id := must(s.RequestMore(t.Context(), by, w.session.ID, long))(t).ID
				must(s.DenyRequest(t.Context(), w.key, w.session.ID, id, strings.Repeat("n", 100)))(t)
			}
			a := s.core.Usage.Account(w.key.Organization)
			a.Mu.Lock()
			defer a.Mu.Unlock()
			used := a.Used()
			return used[kernel.BytesHeld]
		}
		before := round(0)
		counted := round(40) - before
		taken := must(peek(t, s).MemoryUsage(t.Context(), s.keys.SessionRequests(w.agent.ID, w.session.ID), 0).Result())(t)
		if counted < taken*3/4 || counted > taken*5/4 {
			t.Errorf("counted are %d bytes, taken %d", counted, taken)
		}
		if more := round(40) - before - counted; more != 0 {
			t.Errorf("as many again are counted with %d bytes more", more)
		}
	})
}

func TestADamagedRecordIsAnError(t *testing.T) {
	t.Parallel()
	sound := "approved 1 2 3 4 5 6 2 abc"
	if v, err := readRecord(uuid.Nil, sound); err != nil || v.Reason != "ab" || v.Comment != "c" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, damaged := range []string{"", "pending", "pending 1 2 3 4 5 6 2", "pending 1 2 3 4 5 6 3 ab", "pending 1 2 3 4 5 6 -1 ab",
		"pending x 2 3 4 5 6 1 ab", "pending 1 2 3 -4 5 6 1 ab"} {
		if _, err := readRecord(uuid.Nil, damaged); !errors.Is(err, errReply) {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}
