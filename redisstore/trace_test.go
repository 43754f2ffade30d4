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
	r := redistest.NewSpanRecorder()
	onTenantOf(t, Config{Tracer: r.Tracer}, NewSession{MaxActions: 1000}, func(t *testing.T, s *Store, w tenant) {
		g := w.exchange(t, s)
		must(s.Charge(t.Context(), byToken(g), w.session.ID, Charge{Count: 1}))(t) // the scripts are known now
		for session, want := range map[uuid.UUID]error{w.session.ID: nil, uuid.New(): ErrUnknownSession} {
			spans := spansOf(r, func(ctx context.Context) {
				wantError(t, "a charge", errOf(s.Charge(ctx, byToken(g), session, Charge{Count: 1})), want)
			})
			wantEqual(t, "the spans", redistest.NamesOf(spans), []string{"EVALSHA charge_session"})
			for _, span := range spans {
				if span.Status().Code == codes.Error || span.SpanKind() != trace.SpanKindClient || redistest.AttributeOf(span, "db.system.name") != "redis" ||
					redistest.AttributeOf(span, "remit.operation") != "charge_session" || redistest.AttributeOf(span, "db.operation.name") != "EVALSHA" {
					t.Errorf("%s tells %v, %v", span.Name(), span.Attributes(), span.Status())
				}
			}
		}
	})
}

// spansOf returns the spans of a call, without those of what go-redis says first on a new connection.
func spansOf(r redistest.SpanRecorder, call func(context.Context)) []sdktrace.ReadOnlySpan {
	return slices.DeleteFunc(r.Request(call), func(s sdktrace.ReadOnlySpan) bool {
		verb, _, _ := strings.Cut(s.Name(), " ")
		return slices.Contains([]string{"HELLO", "AUTH", "CLIENT", "SELECT", "CLUSTER", "COMMAND"}, verb)
	})
}

// fewestOf returns the fewest round trips of thirty calls: the first has scripts that Redis does not know, and some prune an index.
func fewestOf(r redistest.SpanRecorder, call func(context.Context)) (fewest []string) {
	for range 30 {
		if trips := redistest.NamesOf(spansOf(r, call)); fewest == nil || len(trips) < len(fewest) {
			fewest = trips
		}
	}
	return fewest
}

func TestAScriptThatRedisHasNotSeenTakesTwoRoundTripsAndTwoSpans(t *testing.T) {
	t.Parallel()
	r := redistest.NewSpanRecorder()
	s := openStore(t, Config{Tracer: r.Tracer}, "redis://"+miniredis.RunT(t).Addr(), nil)
	w := newTenant(t, s, NewSession{})
	spans := spansOf(r, func(ctx context.Context) { must(s.Session(ctx, w.byKey(), w.session.ID))(t) })
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
	r := redistest.NewSpanRecorder()
	onTenantWithCluster(t, Config{Tracer: r.Tracer}, NewSession{}, func(t *testing.T, s *Store, w tenant) {
		keys := 0
		fewest := func(keyed bool) []string {
			return fewestOf(r, func(ctx context.Context) {
				n := NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: 10, Lifetime: time.Hour}
				if keyed {
					keys++
					n.Idempotency = &Idempotency{Key: fmt.Sprint(keys)}
				}
				must(s.CreateSession(ctx, w.key, n))(t)
			})
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
			mustDo(t, s.DeleteBudget(t.Context(), w.key))
			wantEqual(t, fmt.Sprintf("keyed %t: the spans without a budget and under one", keyed), [][]string{without, within}, [][]string{want, want})
		}
	})
}

func TestACallOfTheGatewayTakesThreeRoundTrips(t *testing.T) {
	r := redistest.NewSpanRecorder()
	onTenantWithCluster(t, Config{Tracer: r.Tracer}, NewSession{MaxActions: 1000, MaxValue: money.USD}, func(t *testing.T, s *Store, w tenant) {
		key := s.Remembered(w.sessionKey(t, s))
		n := w.beginning(1)
		n.SpentOnExpiry, n.Irreversible, n.HeldByGateway = true, true, true
		var begun []Transaction
		begin := fewestOf(r, func(ctx context.Context) { begun = append(begun, must(s.Begin(ctx, *key, n))(t)) })
		wantEqual(t, "a begin", begin, []string{"ZADD zadd", "EVALSHA begin_session_transaction"})
		commit := fewestOf(r, func(ctx context.Context) {
			must(s.CommitHeld(ctx, HeldAs(w.key.Organization, begun[0]), new(money.MicroUSD)))(t)
			begun = begun[1:]
		})
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
		do   func(context.Context)
	}{
		"charge_batch": {"2", func(ctx context.Context) {
			must(s.ChargeBatch(ctx, w.byKey(), []BatchCharge{{w.session.ID, charge}, {second.ID, charge}}, nil))(t)
		}},
		"hmget": {"3", func(ctx context.Context) { must(s.Sessions(ctx, w.byKey(), Query{Limit: 10}))(t) }},
	} {
		spans := r.Request(test.do)
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
	must(s.client.Call(ctx, flow{}, reads, "get", s.keys.Issuer()))(t)
	span.End()
	wantEqual(t, "how many spans there are", len(r.Ended()), 0)
}
