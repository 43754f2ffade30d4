package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"remit/money"
	"remit/test/redistest"
)

func TestEachRoundTripOfATracedCallHasASpan(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	onEachRedis(t, Config{Tracer: r.Tracer}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000})
		g := w.exchange(t, s)
		if _, err := s.Charge(t.Context(), byToken(g), w.session.ID, Charge{Count: 1}); err != nil { // the scripts are known now
			t.Fatal(err)
		}
		for name, test := range map[string]struct {
			do   func(context.Context) error
			want []string
		}{
			"a charge": {func(ctx context.Context) error {
				_, err := s.Charge(ctx, byToken(g), w.session.ID, Charge{Count: 1})
				return err
			}, []string{"EVALSHA charge_session"}},
			"a refusal": {func(ctx context.Context) error {
				if _, err := s.Charge(ctx, byToken(g), uuid.New(), Charge{Count: 1}); err == nil {
					return fmt.Errorf("no refusal")
				}
				return nil
			}, []string{"EVALSHA charge_session"}},
		} {
			spans := r.Request(func(ctx context.Context) {
				if err := test.do(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			spans = slices.DeleteFunc(spans, isGreeting)
			if got := redistest.NamesOf(spans); !slices.Equal(got, test.want) {
				t.Errorf("%s: the spans are %q, want %q", name, got, test.want)
			}
			for _, span := range spans {
				if span.Status().Code == codes.Error || span.SpanKind() != trace.SpanKindClient || redistest.AttributeOf(span, "db.system.name") != "redis" ||
					redistest.AttributeOf(span, "remit.operation") != "charge_session" || redistest.AttributeOf(span, "db.operation.name") != "EVALSHA" {
					t.Errorf("%s: %s tells %v, %v", name, span.Name(), span.Attributes(), span.Status())
				}
			}
		}
	})
}

// isGreeting says whether a span is of what go-redis says first on a new connection.
func isGreeting(s sdktrace.ReadOnlySpan) bool {
	verb, _, _ := strings.Cut(s.Name(), " ")
	return slices.Contains([]string{"HELLO", "AUTH", "CLIENT", "SELECT", "CLUSTER", "COMMAND"}, verb)
}

func TestAScriptThatRedisHasNotSeenTakesTwoRoundTripsAndTwoSpans(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	s := openStore(t, Config{Tracer: r.Tracer}, "redis://"+miniredis.RunT(t).Addr(), nil)
	w := newTenant(t, s, NewSession{})
	spans := slices.DeleteFunc(r.Request(func(ctx context.Context) {
		if _, err := s.Session(ctx, w.byKey(), w.session.ID); err != nil {
			t.Error(err)
		}
	}), isGreeting)
	var unknown sdktrace.ReadOnlySpan
	for i, span := range spans {
		if span.Name() == "EVALSHA get_session" && i+1 < len(spans) && spans[i+1].Name() == "EVAL get_session" {
			unknown = span
		}
	}
	if unknown == nil {
		t.Fatalf("the spans are %q", redistest.NamesOf(spans))
	}
	if unknown.Status().Code != codes.Error || redistest.AttributeOf(unknown, "error.type") != "NOSCRIPT" || redistest.AttributeOf(unknown, "db.response.status_code") != "NOSCRIPT" {
		t.Errorf("the first tells %v, %v", unknown.Attributes(), unknown.Status())
	}
}

func TestABudgetAddsNoRoundTripToTheCreationOfASession(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	onEachRedisAndCluster(t, Config{Tracer: r.Tracer}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{})
		keys := 0
		create := func(keyed bool) []string {
			t.Helper()
			n := NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: 10, Lifetime: time.Hour}
			if keyed {
				keys++
				n.Idempotency = &Idempotency{Key: fmt.Sprint(keys)}
			}
			spans := r.Request(func(ctx context.Context) { must(s.CreateSession(ctx, w.key, n))(t) })
			return redistest.NamesOf(slices.DeleteFunc(spans, isGreeting))
		}
		fewest := func(keyed bool) []string { // the first has scripts that Redis does not know, and some prune an index
			trips := create(keyed)
			for range 9 {
				if next := create(keyed); len(next) < len(trips) {
					trips = next
				}
			}
			return trips
		}
		for keyed, want := range map[bool][]string{
			false: {"EVALSHA index_session", "EVALSHA create_session"},
			true:  {"EVALSHA claim_and_index_session", "EVALSHA create_session"},
		} {
			without := fewest(keyed)
			must(s.SetBudget(t.Context(), w.key, 1000, BudgetMonth))(t)
			within := fewest(keyed)
			if reserved := must(s.Budget(t.Context(), w.key))(t).Reserved; reserved < 100 {
				t.Errorf("the budget has reserved %v", reserved)
			}
			if err := s.DeleteBudget(t.Context(), w.key); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(without, want) || !slices.Equal(within, want) {
				t.Errorf("keyed %t: without a budget the spans are %q, under one %q, want %q", keyed, without, within, want)
			}
		}
	})
}

func TestACallOfTheGatewayTakesThreeRoundTrips(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	onEachRedisAndCluster(t, Config{Tracer: r.Tracer}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: money.USD})
		key := s.Remembered(w.sessionKey(t, s))
		n := w.beginning(1)
		n.SpentOnExpiry, n.Irreversible, n.HeldByGateway = true, true, true
		trips := func(do func(context.Context) error) []string {
			t.Helper()
			spans := r.Request(func(ctx context.Context) {
				if err := do(ctx); err != nil {
					t.Error(err)
				}
			})
			return redistest.NamesOf(slices.DeleteFunc(spans, isGreeting))
		}
		var begin, commit []string
		for range 10 { // the first has scripts that Redis does not know, and some prune an index
			var begun Transaction
			begins := trips(func(ctx context.Context) (err error) { begun, err = s.Begin(ctx, *key, n); return err })
			commits := trips(func(ctx context.Context) error {
				return errOf(s.CommitHeld(ctx, HeldAs(w.key.Organization, begun), new(money.MicroUSD)))
			})
			if begin == nil || len(begins) < len(begin) {
				begin, commit = begins, commits
			}
		}
		wantEqual(t, "a begin", begin, []string{"ZADD zadd", "EVALSHA begin_session_transaction"})
		wantEqual(t, "a commit", commit, []string{"EVALSHA commit_transaction"})
	})
}

func TestABatchAndAListHaveASpanForTheirPipeline(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	s := openStore(t, Config{Tracer: r.Tracer}, "redis://"+miniredis.RunT(t).Addr(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 1000})
	second := w.newSession(t, s, time.Hour)
	charge := Charge{Count: 1}
	must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10}))(t) // from then on, the pipeline of a list has the agent too
	for what, test := range map[string]struct {
		size string
		do   func(context.Context) error
	}{
		"charge_batch": {"2", func(ctx context.Context) error {
			_, err := s.ChargeBatch(ctx, w.byKey(), []BatchCharge{{w.session.ID, charge}, {second.ID, charge}}, nil)
			return err
		}},
		"hmget": {"3", func(ctx context.Context) error {
			_, err := s.Sessions(ctx, w.byKey(), Query{Limit: 10})
			return err
		}},
	} {
		spans := r.Request(func(ctx context.Context) {
			if err := test.do(ctx); err != nil {
				t.Error(err)
			}
		})
		if !slices.ContainsFunc(spans, func(s sdktrace.ReadOnlySpan) bool {
			return redistest.AttributeOf(s, "remit.operation") == what && redistest.AttributeOf(s, "db.operation.batch.size") == test.size
		}) {
			t.Errorf("%s: the spans are %q", what, redistest.NamesOf(spans))
		}
	}
}

func TestSpansContainNoKeysOrArguments(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	s := openStore(t, Config{Tracer: r.Tracer}, "redis://"+miniredis.RunT(t).Addr(), nil)
	r.Request(func(ctx context.Context) {
		w := newTenant(t, s, NewSession{})
		_, _ = s.Charge(ctx, w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: "an-idempotency-key"}})
		_, _ = s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{})
		_, _ = s.client.Call(ctx, flow{}, reads, "hget", s.keys.Agent(w.agent.ID), "x") // WRONGTYPE or not, it names the key
		_, _ = s.client.Call(ctx, flow{}, reads, "llen", s.keys.Agent(w.agent.ID))
	})
	known := []string{"db.system.name", "remit.operation", "db.operation.name", "db.operation.batch.size", "db.response.status_code",
		"error.type", "server.address", "server.port"}
	if len(r.Ended()) < 5 {
		t.Fatalf("only %d spans", len(r.Ended()))
	}
	for _, span := range r.Ended() {
		for _, a := range span.Attributes() {
			value := a.Value.String()
			if !slices.Contains(known, string(a.Key)) || strings.Contains(value, s.keys.Prefix) || strings.ContainsAny(value, " {}\x00") || len(value) > 40 {
				t.Errorf("%s tells %s=%q", span.Name(), a.Key, value)
			}
		}
		if len(span.Events()) > 0 || span.Status().Description != "" {
			t.Errorf("%s tells %v, %q", span.Name(), span.Events(), span.Status().Description)
		}
	}
}

func TestUntracedRequestsHaveNoSpans(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	s := openStore(t, Config{Tracer: r.Tracer}, "redis://"+miniredis.RunT(t).Addr(), nil)
	newTenant(t, s, NewSession{})
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test")
	ctx, span := never.Start(context.Background(), "request")
	if _, err := s.client.Call(ctx, flow{}, reads, "get", s.keys.Issuer()); err != nil {
		t.Error(err)
	}
	span.End()
	if all := r.Ended(); len(all) > 0 {
		t.Errorf("there are spans %q", redistest.NamesOf(all))
	}
}
