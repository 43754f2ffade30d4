package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/event"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
)

func TestEveryChangeLeavesOneEventThatDescribesIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000})
		grant, other := w.exchange(t, s), w.exchange(t, s)
		token, session := grant.AccessToken, w.session.ID
		var begun Transaction // the last one
		trail := w.follow(s)
		trail(t)
		for i, step := range []struct {
			do   func(ctx context.Context) error
			want func() Event // after it was done
		}{
			{func(ctx context.Context) (err error) {
				begun, err = s.Begin(ctx, token, w.beginning(40))
				return err
			}, func() Event {
				return Event{Type: "transaction.begun", Session: session, Transaction: begun.ID, Lasts: time.Hour,
					Data: event.Data{Held: new(money.MicroUSD(40))}}
			}},
			{func(ctx context.Context) error {
				_, err := s.Commit(ctx, token, begun.ID, Commit{Value: new(money.MicroUSD(1007))})
				return err
			}, func() Event {
				return Event{Type: "transaction.committed", Session: session, Transaction: begun.ID,
					Data: event.Data{Charged: new(money.MicroUSD(1000)), Overage: new(money.MicroUSD(7))}}
			}},
			{func(ctx context.Context) error {
				_, err := s.Rollback(ctx, w.byKey(), begun.ID, Rollback{Reason: "why"})
				return err
			}, func() Event {
				return Event{Type: "transaction.rolled_back", Actor: w.byKeyActor(), Session: session, Transaction: begun.ID,
					Data: event.Data{Released: new(money.MicroUSD(1000))}}
			}},
			{func(ctx context.Context) (err error) {
				begun, err = s.Begin(ctx, token, w.alone(5))
				return err
			}, func() Event { return Event{Type: "transaction.begun", Transaction: begun.ID} }},
			{func(ctx context.Context) error {
				_, err := s.Commit(ctx, token, begun.ID, Commit{})
				return err
			}, func() Event {
				return Event{Type: "transaction.committed", Transaction: begun.ID, Data: event.Data{Charged: new(money.MicroUSD(5)), Overage: new(money.MicroUSD(0))}}
			}},
			{func(ctx context.Context) error {
				_, err := s.ChangeLimits(ctx, w.key, session, NewLimits{MaxActions: new(int64(900))})
				return err
			}, func() Event {
				return Event{Type: "session.limits_changed", Actor: w.byKeyActor(), Session: session, Data: event.Data{MaxActions: new(int64(900))}}
			}},
			{func(ctx context.Context) (err error) {
				w.session, err = s.ChangeLimits(ctx, w.key, session,
					NewLimits{MaxValue: new(money.MicroUSD(900)), Lifetime: new(time.Minute)})
				return err
			}, func() Event {
				return Event{Type: "session.limits_changed", Actor: w.byKeyActor(), Session: session, Data: event.Data{MaxValue: new(money.MicroUSD(900)), Expires: event.Timestamp(w.session.Expires)}}
			}},
			{func(ctx context.Context) error {
				_, err := s.EndSession(ctx, byToken(grant), session)
				return err
			}, func() Event {
				return Event{Type: "session.ended", Session: session, Data: event.Data{Released: new(money.MicroUSD(0))}}
			}},
			{func(ctx context.Context) (err error) {
				w.session, err = s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 7, MaxValue: 9, Lifetime: time.Hour})
				return err
			}, func() Event {
				return Event{Type: "session.created", Actor: w.byKeyActor(), Session: w.session.ID,
					Data: event.Data{MaxActions: new(int64(7)), MaxValue: new(money.MicroUSD(9)), Expires: event.Timestamp(w.session.Expires)}}
			}},
			{func(ctx context.Context) error {
				_, err := s.RotateRefresh(ctx, w.agent.ID, grant.Family, 1, GrantRequest{})
				return err
			}, func() Event { return Event{Type: "token.refreshed", Family: grant.Family} }},
			{func(ctx context.Context) error { return s.RevokeFamily(ctx, token, other.Family) },
				func() Event { return Event{Type: "token.revoked", Family: other.Family} }},
			{func(ctx context.Context) (err error) {
				other, err = s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{})
				return err
			}, func() Event { return Event{Type: "token.issued", Family: other.Family} }},
			{func(ctx context.Context) error {
				_, err := s.RevokeAgent(ctx, w.key, w.agent.ID)
				return err
			}, func() Event { return Event{Type: "agent.revoked", Actor: w.byKeyActor()} }},
		} {
			request := fmt.Sprint("request-", i)
			if err := step.do(WithRequestID(t.Context(), request)); err != nil {
				t.Fatal(err)
			}
			want := step.want()
			want.Request = request
			got := slices.DeleteFunc(trail(t), func(e Event) bool { return e.Limit != "" })
			if !reflect.DeepEqual(got, []Event{want}) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
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
			if e.Agent != w.agent.ID {
				t.Errorf("%s is of %s", e.Type, e.Agent)
			}
			if e.Actor == (event.Actor{Type: event.ByAgent, ID: w.agent.ID}) {
				e.Actor = event.Actor{}
			}
			after, e.ID, e.Time, e.Agent = e.ID, "", event.Timestamp{}, uuid.Nil
		}
		return events
	}
}

func TestEndingASessionLeavesAnEventOfEachTransactionItRollsBack(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000})
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
		want := []Event{
			expired, told("transaction.rolled_back", first.ID, 3),
			told("transaction.rolled_back", second.ID, 4), told("session.ended", uuid.Nil, 7),
		}
		if got := trail(t); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		begun := w.begin(t, s, grant.AccessToken, 10)
		must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{}))(t)
		trail := w.follow(s)
		trail(t)
		refusals := []error{}
		refuse := func(err error) { refusals = append(refusals, err) }
		for _, token := range []AccessToken{grant.AccessToken, dead.AccessToken} {
			_, err := s.Commit(t.Context(), token, begun.ID, Commit{})
			refuse(err)
			_, err = s.Commit(t.Context(), token, NewID(begun.ID), Commit{})
			refuse(err)
			_, err = s.Rollback(t.Context(), Caller{Token: &token}, NewID(begun.ID), Rollback{})
			refuse(err)
			n := w.beginning(0)
			n.Session = NewID(begun.ID)
			_, err = s.Begin(t.Context(), token, n)
			refuse(err)
			_, err = s.Charge(t.Context(), Caller{Token: &token}, w.session.ID, Charge{Count: 1, Scope: "admin"})
			refuse(err)
		}
		_, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxActions: new(int64(0))})
		refuse(err)
		_, err = s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Scopes: []string{"admin"}, Lifetime: 1e9})
		refuse(err)
		_, err = s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{9}, GrantRequest{})
		refuse(err)
		if got := trail(t); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		if slices.Contains(refusals, nil) {
			t.Errorf("%v", refusals)
		}
	})
}

func TestNoEventHoldsACredential(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		random := func() (secret [32]byte) {
			first, second := uuid.New(), uuid.New()
			copy(secret[:], append(first[:], second[:]...))
			return secret
		}
		key := APIKey{Organization: NewRootID(), Hash: random()}
		must(s.CreateOrganization(t.Context(), "", key, "acme", "", nil))(t)
		secret, next := random(), random()
		w := tenant{key: key, secret: secret}
		w.agent = must(s.CreateAgent(t.Context(), key, Agent{Name: "scout", Scopes: []string{"read"}}, secret, nil))(t)
		grant := w.exchange(t, s)
		must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{}))(t)
		must(s.RotateAgentSecret(t.Context(), key, w.agent.ID, SecretRotation{Hash: next, Grace: time.Hour}, nil))(t)
		w.secret = next
		idem := &Idempotency{Key: "the-idempotency-key", Fingerprint: random()}
		w.session = must(s.CreateSession(t.Context(), key,
			NewSession{Agent: w.agent.ID, MaxActions: 10, MaxValue: 10, Lifetime: time.Hour, Idempotency: idem}))(t)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 10, Idempotency: &Idempotency{Key: "another", Fingerprint: random()}}))(t)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		if err := s.RevokeFamily(t.Context(), w.exchange(t, s).AccessToken, grant.Family); err != nil {
			t.Fatal(err)
		}
		entries := must(peek(t, s).XRange(t.Context(), s.keys.Events(w.agent.ID), "-", "+").Result())(t)
		if len(entries) < 8 {
			t.Errorf("%d events", len(entries))
		}
		for _, entry := range entries {
			text := fmt.Append(nil, entry.Values)
			for _, hash := range [][32]byte{key.Hash, secret, next, idem.Fingerprint} {
				if bytes.Contains(text, hash[:]) || bytes.Contains(text, fmt.Appendf(nil, "%x", hash)) {
					t.Errorf("%q holds a hash", text)
				}
			}
		}
	})
}

func TestATrailKeepsAboutAsManyEventsAsConfigured(t *testing.T) {
	t.Parallel()
	const kept = 50
	onEachRedis(t, Config{EventsKept: kept}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000})
		token := w.exchange(t, s).AccessToken
		var last Transaction
		for range 250 {
			last = w.begin(t, s, token, 0)
		}
		events := w.follow(s)(t)
		if len(events) < kept || len(events) > kept+100 {
			t.Errorf("%d events", len(events))
		}
		if newest := events[len(events)-1]; newest.Transaction != last.ID && events[len(events)-2].Transaction != last.ID {
			t.Errorf("the newest is %+v, the last transaction %s", newest, last.ID)
		}
	})
}

func TestPagesHoldEveryEventOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000})
		grant := w.exchange(t, s)
		for range 4 {
			w.begin(t, s, grant.AccessToken, 0)
		}
		all, more, err := s.Events(t.Context(), w.byKey(), w.agent.ID, "", 100)
		if err != nil || more || len(all) != 7 {
			t.Fatalf("%d events, %t, %v", len(all), more, err)
		}
		for limit := 1; limit <= len(all)+1; limit++ {
			for _, caller := range []Caller{w.byKey(), byToken(grant)} {
				var paged []Event
				for after, more := "", true; more; after = paged[len(paged)-1].ID {
					var page []Event
					if page, more, err = s.Events(t.Context(), caller, w.agent.ID, after, limit); err != nil || len(page) > limit {
						t.Fatalf("%d events, %v", len(page), err)
					}
					paged = append(paged, page...)
					if len(paged) > len(all) {
						t.Fatalf("the pages do not end: %+v", paged)
					}
				}
				if !reflect.DeepEqual(paged, all) {
					t.Errorf("in pages of %d: %+v, want %+v", limit, paged, all)
				}
			}
		}
		for _, last := range []string{all[6].ID, "18446744073709551615-18446744073709551614"} {
			if rest, more, err := s.Events(t.Context(), w.byKey(), w.agent.ID, last, 10); len(rest) != 0 || more || err != nil {
				t.Errorf("after %s: %+v, %t, %v", last, rest, more, err)
			}
		}
		if rest, _, err := s.Events(t.Context(), w.byKey(), w.agent.ID, "0-1", 10); len(rest) != 7 || err != nil {
			t.Errorf("after an id of long ago: %+v, %v", rest, err)
		}
	})
}

func TestEventsAreForTheAgentAndItsOrganization(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 1}), newTenant(t, s, NewSession{MaxActions: 1})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		for name, test := range map[string]struct {
			caller Caller
			agent  uuid.UUID
			want   error
		}{
			"another organization":          {foreign.byKey(), w.agent.ID, ErrUnknownAgent},
			"another organization's agent":  {byToken(foreign.exchange(t, s)), w.agent.ID, ErrUnknownAgent},
			"an agent of the same cell":     {byToken(putAgent(t, s, w.key, NewID(w.agent.ID))), w.agent.ID, ErrUnknownAgent},
			"its organization, of no agent": {w.byKey(), NewID(w.agent.ID), ErrUnknownAgent},
			"itself, of no agent":           {byToken(grant), NewID(w.agent.ID), ErrUnknownAgent},
			"a revoked family":              {byToken(dead), w.agent.ID, ErrInvalidToken},
			"a revoked family, of another":  {byToken(dead), foreign.agent.ID, ErrInvalidToken},
			"a wrong key":                   {Caller{Key: &APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}}, w.agent.ID, ErrInvalidAPIKey},
			"a token of no agent": {Caller{Token: &AccessToken{Organization: w.key.Organization, Agent: NewID(w.agent.ID), Family: grant.Family}},
				w.agent.ID, ErrInvalidToken},
		} {
			events, more, err := s.Events(t.Context(), test.caller, test.agent, "", 10)
			if wantError(t, name, err, test.want); len(events) != 0 || more {
				t.Errorf("%s sees %+v", name, events)
			}
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		if events := w.follow(s)(t); len(events) == 0 {
			t.Error("a revoked agent has no trail")
		}
	})
}

func TestEventsOfALaterVersionAreReadAsFarAsTheyAreKnown(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	e, err := kernel.ReadEvent(&reply{Values: []any{"5-1", []any{"type", "session.painted", "at", "1700000000123", "actor", "key",
		"request", "r", "colour", "red", "session", id.String(), "family", "", "limit", "max_actions", "number", "7"}}})
	want := Event{ID: "5-1", Type: "session.painted", Time: event.Timestamp(time.UnixMilli(1_700_000_000_123)),
		Actor: event.Actor{Type: event.ByKey}, Request: "r", Session: id, Data: event.Data{Limit: "max_actions"}}
	if err != nil || !reflect.DeepEqual(e, want) {
		t.Errorf("%+v, %v, want %+v", e, err, want)
	}
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
		if e, err := kernel.ReadEvent(&reply{Values: entry}); !errors.Is(err, errReply) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestEventIDsAreTwoNumbers(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"0-0": true, "1700000000123-0": true, "18446744073709551615-18446744073709551614": true, "18446744073709551615-18446744073709551615": false, "007-1": true,
		"": false, "5": false, "5-": false, "-5": false, "-": false, "5-1-1": false, "+5-1": false, "5-+1": false,
		"18446744073709551616-0": false, "0-18446744073709551616": false, "5 -1": false, "a-1": false, "5-*": false,
		"(5-1": false, "5_0-1": false, "0x5-1": false, "$": false, "5-1\n": false,
	} {
		if got := records.ValidEventID(id); got != want {
			t.Errorf("%q: %t", id, got)
		}
	}
}

func TestLaterEventsHaveGreaterIDs(t *testing.T) {
	t.Parallel()
	ascending := []string{"", "0-1", "1-0", "1-2", "1-10", "9-99", "10-0", "1700000000123-0", "1700000000123-1", "18446744073709551615-0"}
	for i, first := range ascending {
		for j, second := range ascending {
			if got := kernel.IsLater(second, first); got != (j > i) {
				t.Errorf("%q after %q: %t", second, first, got)
			}
		}
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

func TestTheAuditTrailNamesTheCaller(t *testing.T) {
	t.Parallel()
	s := &kernel.Core{TrailKept: "12"}
	ctx := WithRequestID(t.Context(), "r 1")
	for want, act := range map[string]kernel.Actor{"12 key r 1": {}, "12 agent r 1": {Family: kernel.FamilyField(uuid.New())}} {
		if got := strings.Join(joined(s.Audit(ctx, act)), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := strings.Join(joined(s.AuditAs(t.Context(), kernel.ActorKey)), " "); got != "12 key " {
		t.Errorf("%q", got)
	}
}

func joined(words redisclient.Joined) []string { return words[:] }
