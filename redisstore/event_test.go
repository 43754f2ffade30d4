package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/event"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
)

// The traces have the other events.
func TestAChangeLeavesOneEventThatDescribesItAndNamesItsRequest(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		grant, other := w.exchange(t, s), w.exchange(t, s)
		token, session, byKey := grant.AccessToken, w.session.ID, w.byKeyActor()
		trail, requests := w.follow(s), 0
		trail(t)
		request := func() string { return fmt.Sprint("request-", requests) }
		next := func() context.Context {
			requests++
			return WithRequestID(t.Context(), request())
		}
		wantOne := func(e Event) {
			t.Helper()
			e.Request = request()
			wantEqual(t, e.Type, slices.DeleteFunc(trail(t), func(e Event) bool { return e.Limit != "" }), []Event{e})
		}
		usd := func(value money.MicroUSD) *money.MicroUSD { return &value }

		begun := must(s.Begin(next(), token, w.beginning(40)))(t)
		wantOne(Event{Type: "transaction.begun", Session: session, Transaction: begun.ID, Lasts: time.Hour, Data: event.Data{Held: usd(40)}})
		begun = must(s.Begin(next(), token, w.alone(5)))(t)
		wantOne(Event{Type: "transaction.begun", Transaction: begun.ID})
		must(s.Commit(next(), token, begun.ID, Commit{}))(t)
		wantOne(Event{Type: "transaction.committed", Transaction: begun.ID, Data: event.Data{Charged: usd(5), Overage: usd(0)}})
		begun = must(s.Begin(t.Context(), token, w.beginning(7)))(t)
		trail(t)
		must(s.Rollback(next(), w.byKey(), begun.ID, Rollback{Reason: "why"}))(t)
		wantOne(Event{Type: "transaction.rolled_back", Actor: byKey, Session: session, Transaction: begun.ID, Data: event.Data{Released: usd(7)}})

		changed := must(s.ChangeLimits(next(), w.key, session, NewLimits{MaxValue: usd(900), Lifetime: new(time.Minute)}))(t)
		wantOne(Event{Type: "session.limits_changed", Actor: byKey, Session: session,
			Data: event.Data{MaxValue: usd(900), Expires: event.Timestamp(changed.Expires)}})
		made := must(s.CreateSession(next(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 7, MaxValue: 9, Lifetime: time.Hour}))(t)
		wantOne(Event{Type: "session.created", Actor: byKey, Session: made.ID,
			Data: event.Data{MaxActions: new(int64(7)), MaxValue: usd(9), Expires: event.Timestamp(made.Expires)}})

		must(s.RotateRefresh(next(), w.agent.ID, grant.Family, 1, GrantRequest{}))(t)
		wantOne(Event{Type: "token.refreshed", Family: grant.Family})
		mustDo(t, s.RevokeFamily(next(), token, other.Family))
		wantOne(Event{Type: "token.revoked", Family: other.Family})
		issued := must(s.ExchangeSecret(next(), w.agent.ID, w.secret, GrantRequest{}))(t)
		wantOne(Event{Type: "token.issued", Family: issued.Family})
		must(s.RevokeAgent(next(), w.key, w.agent.ID))(t)
		wantOne(Event{Type: "agent.revoked", Actor: byKey})
	})
}

// byKeyActor is the actor of what the tenant does by its API key.
func (w tenant) byKeyActor() event.Actor {
	return event.Actor{Type: event.ByKey, ID: w.key.Organization}
}

// follow returns a function that returns what has come into the tenant's trail since it was called last, without ids, times,
// the agent, and the actor if it is the agent, which it checks.
func (w tenant) follow(s *Store) func(*testing.T) []Event {
	after, since := "", w.agent.Created.Truncate(time.Millisecond) // the first event is of its creation
	return func(t *testing.T) []Event {
		t.Helper()
		events, more, err := s.Events(t.Context(), w.byKey(), w.agent.ID, after, 1000)
		if err != nil || more {
			t.Fatal(more, err)
		}
		for i := range events {
			e := &events[i]
			if !records.ValidEventID(e.ID) || !kernel.IsLater(e.ID, after) {
				t.Errorf("%q comes after %q", e.ID, after)
			}
			if at := time.Time(e.Time); at.Before(since) || at.After(time.Now().Add(time.Second)) {
				t.Errorf("%s happened at %s", e.Type, at)
			}
			wantEqual(t, "the agent of "+e.Type, e.Agent, w.agent.ID)
			if e.Actor == (event.Actor{Type: event.ByAgent, ID: w.agent.ID}) {
				e.Actor = event.Actor{}
			}
			after, e.ID, e.Time, e.Agent = e.ID, "", event.Timestamp{}, uuid.Nil
		}
		return events
	}
}

func TestEndingASessionLeavesAnEventOfEachTransactionItRollsBack(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		token := w.exchange(t, s).AccessToken
		first, second := w.begin(t, s, token, 3), w.begin(t, s, token, 4)
		late := w.begin(t, s, token, 5)
		w.letPass(t, s, late)
		trail := w.follow(s)
		trail(t)
		must(s.EndSession(WithRequestID(t.Context(), "end"), w.byKey(), w.session.ID))(t)
		must(s.EndSession(WithRequestID(t.Context(), "again"), w.byKey(), w.session.ID))(t)
		told := func(kind string, transaction uuid.UUID, released money.MicroUSD) Event {
			return Event{Type: kind, Actor: w.byKeyActor(), Request: "end", Session: w.session.ID, Transaction: transaction,
				Data: event.Data{Released: &released}}
		}
		expired := told("transaction.expired", late.ID, 5)
		expired.Actor, expired.Request = event.Actor{Type: event.ByTime}, ""
		wantEqual(t, "the events", trail(t), []Event{
			expired, told("transaction.rolled_back", first.ID, 3),
			told("transaction.rolled_back", second.ID, 4), told("session.ended", uuid.Nil, 7),
		})
	})
}

// charge tries to charge the tenant's session.
func (w tenant) charge(t *testing.T, s *Store, count int64, value money.MicroUSD) {
	t.Helper()
	_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: count, Value: value})
	var reached *LimitError
	var over *NotActiveError
	if err != nil && !errors.As(err, &reached) && !errors.As(err, &over) {
		t.Fatal(err)
	}
}

// What is refused is no change; that it is refused the first time is noted, and no other test here is about it.
func TestRefusalsLeaveNoEvent(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		mustDo(t, s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family))
		begun := w.begin(t, s, grant.AccessToken, 10)
		must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{}))(t)
		trail := w.follow(s)
		trail(t)
		var refusals []error
		for _, token := range []AccessToken{grant.AccessToken, dead.AccessToken} {
			n := w.beginning(0)
			n.Session = NewID(begun.ID)
			refusals = append(refusals,
				errOf(s.Commit(t.Context(), token, begun.ID, Commit{})),
				errOf(s.Commit(t.Context(), token, NewID(begun.ID), Commit{})),
				errOf(s.Rollback(t.Context(), Caller{Token: &token}, NewID(begun.ID), Rollback{})),
				errOf(s.Begin(t.Context(), token, n)),
				errOf(s.Charge(t.Context(), Caller{Token: &token}, w.session.ID, Charge{Count: 1, Scope: "admin"})))
		}
		refusals = append(refusals,
			errOf(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxActions: new(int64(0))})),
			errOf(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Scopes: []string{"admin"}, Lifetime: 1e9})),
			errOf(s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{9}, GrantRequest{})))
		wantEqual(t, "how many events there are", len(trail(t)), 0)
		if slices.Contains(refusals, nil) {
			t.Errorf("%v", refusals)
		}
	})
}

func TestNoEventHoldsACredential(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		grant, before := w.exchange(t, s), w.secret
		must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{}))(t)
		w.rotateSecret(t, s, time.Hour)
		idem := &Idempotency{Key: "the-idempotency-key", Fingerprint: [32]byte{9}}
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 10, Idempotency: idem}))(t)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		mustDo(t, s.RevokeFamily(t.Context(), w.exchange(t, s).AccessToken, grant.Family))
		entries := must(peek(t, s).XRange(t.Context(), s.keys.Events(w.agent.ID), "-", "+").Result())(t)
		if len(entries) < 8 {
			t.Errorf("%d events", len(entries))
		}
		for _, entry := range entries {
			text := fmt.Append(nil, entry.Values)
			for _, hash := range [][32]byte{w.key.Hash, before, w.secret, idem.Fingerprint} {
				if bytes.Contains(text, hash[:]) || bytes.Contains(text, fmt.Appendf(nil, "%x", hash)) {
					t.Errorf("%q holds a hash", text)
				}
			}
		}
	})
}

func TestATrailKeepsAboutAsManyEventsAsConfigured(t *testing.T) {
	const kept = 50
	onTenant(t, Config{EventsKept: kept}, func(t *testing.T, s *Store, w tenant) {
		token := w.exchange(t, s).AccessToken
		var last Transaction
		for range 250 {
			last = must(s.Begin(t.Context(), token, w.alone(0)))(t)
		}
		events := w.follow(s)(t)
		if len(events) < kept || len(events) > kept+100 {
			t.Errorf("%d events", len(events))
		}
		wantEqual(t, "the newest is of the last transaction", events[len(events)-1].Transaction, last.ID)
	})
}

func TestPagesHoldEveryEventOnce(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		for range 4 {
			w.begin(t, s, grant.AccessToken, 0)
		}
		all := w.eventsOf(t, s, w.agent.ID)
		wantEqual(t, "how many events there are", len(all), 7)
		for limit := 1; limit <= len(all)+1; limit++ {
			for _, caller := range []Caller{w.byKey(), byToken(grant)} {
				var paged []Event
				for after, more := "", true; more && len(paged) <= len(all); after = paged[len(paged)-1].ID {
					var page []Event
					if page, more = must2(s.Events(t.Context(), caller, w.agent.ID, after, limit))(t); len(page) > limit {
						t.Fatalf("%d events are on a page of %d", len(page), limit)
					}
					paged = append(paged, page...)
				}
				wantEqual(t, fmt.Sprintf("in pages of %d", limit), paged, all)
			}
		}
		for _, last := range []string{all[6].ID, "18446744073709551615-18446744073709551614"} {
			if rest, more, err := s.Events(t.Context(), w.byKey(), w.agent.ID, last, 10); len(rest) != 0 || more || err != nil {
				t.Errorf("after %s: %+v, %t, %v", last, rest, more, err)
			}
		}
		rest, _ := must2(s.Events(t.Context(), w.byKey(), w.agent.ID, "0-1", 10))(t)
		wantEqual(t, "after an id of long ago", rest, all)
	})
}

func TestEventsOfALaterVersionAreReadAsFarAsTheyAreKnown(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	e := must(kernel.ReadEvent(&reply{Values: []any{"5-1", []any{"type", "session.painted", "at", "1700000000123", "actor", "key",
		"request", "r", "colour", "red", "session", id.String(), "family", "", "limit", "max_actions", "number", "7"}}}))(t)
	wantEqual(t, "the event", e, Event{ID: "5-1", Type: "session.painted", Time: event.Timestamp(time.UnixMilli(1_700_000_000_123)),
		Actor: event.Actor{Type: event.ByKey}, Request: "r", Session: id, Data: event.Data{Limit: "max_actions"}})
}

func TestEventsThatNoScriptWritesAreErrors(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string][]any{
		"no fields":           {"5-1"},
		"no id":               {nil, []any{}},
		"a time in words":     {"5-1", []any{"at", "noon"}},
		"a session that is 5": {"5-1", []any{"session", "short"}},
		"an amount in words":  {"5-1", []any{"held", "much"}},
	} {
		wantError(t, name, errOf(kernel.ReadEvent(&reply{Values: entry})), errReply)
	}
}

func TestARequestIDGoesWithItsContext(t *testing.T) {
	t.Parallel()
	type other struct{}
	parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), other{}, 7))
	ctx := WithRequestID(parent, "r-1")
	if kernel.RequestID(ctx) != "r-1" || kernel.RequestID(parent) != "" || kernel.RequestID(WithRequestID(ctx, "r-2")) != "r-2" {
		t.Error("it is another")
	}
	below, stop := context.WithTimeout(ctx, time.Hour)
	defer stop()
	cause := errors.New("gone")
	cancel(cause)
	if kernel.RequestID(below) != "r-1" || below.Value(other{}) != 7 || context.Cause(below) != cause {
		t.Error("it hides what its parent has")
	}
}
