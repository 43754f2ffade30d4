package redisstore

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
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

// Whatever is decided at once by two instances, one decision counts, and its amounts are added once.
func TestDecisionsAtOnceOverTwoInstancesCountOnce(t *testing.T) {
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 10, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		instances := []*Store{s, anotherInstance(t, s)}
		asked := w.ask(t, s, w.exchange(t, s).AccessToken, 8, 80)
		approvals := []*Approval{nil, {}, {AddActions: new(int64(1)), AddValue: new(money.MicroUSD(1))}} // nil denies
		var mu sync.Mutex
		won := map[string]int{}
		concurrently(t, 24, func(i int) {
			var decided SessionRequest
			var err error
			if approval := approvals[i%3]; approval == nil {
				decided, err = instances[i%2].DenyRequest(t.Context(), w.key, w.session.ID, asked.ID, "")
			} else {
				decided, err = instances[i%2].ApproveRequest(t.Context(), w.key, w.session.ID, asked.ID, *approval)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && !decided.Repeated:
				won[fmt.Sprint(decided.Status, decided.GrantedActions)]++
			case err != nil && !errors.Is(err, ErrRequestDecided):
				t.Errorf("%d: %v", i, err)
			}
		})
		found := must(s.SessionRequest(t.Context(), w.byKey(), w.session.ID, asked.ID))(t)
		if len(won) != 1 || won[fmt.Sprint(found.Status, found.GrantedActions)] != 1 {
			t.Errorf("the decisions are %v, the request is %+v", won, found)
		}
		is := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		if is.MaxActions != 10+found.GrantedActions || is.MaxValue != 100+found.GrantedValue {
			t.Errorf("%d and %d were granted, the limits are %+v", found.GrantedActions, found.GrantedValue, is.Usage)
		}
	})
}

func TestASessionHasAtMostEightPendingRequestsAndKeeps32DecidedOnes(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1, MaxValue: 10}, func(t *testing.T, s *Store, w tenant) {
		by := w.exchange(t, s).AccessToken
		var asked []uuid.UUID
		for range 8 {
			asked = append(asked, w.ask(t, s, by, 1, 0).ID)
		}
		full := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		more := NewSessionRequest{AddActions: 1, Reason: "x"}
		wantError(t, "the ninth", errOf(s.RequestMore(t.Context(), by, w.session.ID, more)), &LimitError{Limit: "max_pending_requests", Usage: full.Usage})
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
		wantError(t, "the one decided first", errOf(s.SessionRequest(t.Context(), w.byKey(), w.session.ID, asked[0])), ErrUnknownRequest)
		wantError(t, "one more", errOf(s.RequestMore(t.Context(), by, w.session.ID, more)), &LimitError{Limit: "max_pending_requests", Usage: full.Usage})
		wantEqual(t, "how many fields the hash has", must(peek(t, s).HLen(t.Context(), s.keys.SessionRequests(w.agent.ID, w.session.ID)).Result())(t), 40+3)
	})
}

// sameMoment says whether the request at i was created in the same ms as a neighbour: their order is that of their ids.
func sameMoment(kept []SessionRequest, i int) bool {
	return i > 0 && kept[i-1].Created.Equal(kept[i].Created) || i+1 < len(kept) && kept[i+1].Created.Equal(kept[i].Created)
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
		wantEqual(t, "how many bytes more as many again are counted with", round(40)-before-counted, 0)
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
		wantError(t, strconv.Quote(damaged), errOf(readRecord(uuid.Nil, damaged)), errReply)
	}
}
