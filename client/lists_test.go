package client_test

import (
	"errors"
	"iter"
	"net/http"
	"slices"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

// A page follows as the link says, for what was asked for. Proxies may add links to the service's, in the same line or in others.
func TestTheNextPageIsFoundAmongOtherLinks(t *testing.T) {
	t.Parallel()
	const following, other = `<http://elsewhere.test/v1/sessions?cursor=c%2B1&x=1>; rel="next"`, `</other?cursor=no>; rel="preload"; title="a, <b>"`
	for _, links := range [][]string{
		{following}, {other, following}, {following, other}, {other + "," + following}, {following + ", " + other},
	} {
		f := &fake{react: inTurn(
			reaction{status: 200, body: `[{"id":"s1"}]`, header: http.Header{"Link": links}}, ok(`[{"id":"s2"}]`),
		)}
		collect(t, newClient(t, f, client.Options{}).Organization("k").Sessions(t.Context(), client.SessionFilter{Status: "active"}), sessionID)
		if asked := f.to("/v1/sessions"); len(asked) != 2 || asked[1].query != "cursor=c%2B1&limit=100&status=active" {
			t.Errorf("%q: asked %d times, last with %s", links, len(asked), asked[len(asked)-1].query)
		}
	}
}

const limitMembers = `"limit":"max_value_usd","action_count":3,"max_actions":10,"value_used_usd":1.5,"max_value_usd":8,` +
	`"value_held_usd":0.25,"remaining_actions":7,"remaining_value_usd":6.25,"expires_at":"2026-11-21T09:19:32.859Z"`

var usage = client.Usage{
	ActionCount: 3, MaxActions: 10, RemainingActions: 7,
	ValueUsed: 1_500_000, MaxValue: 8 * money.USD, ValueHeld: 250_000, RemainingValue: 6_250_000,
	ExpiresAt: time.Date(2026, 11, 21, 9, 19, 32, 859_000_000, time.UTC),
}

func TestChargeManyReturnsEachResult(t *testing.T) {
	t.Parallel()
	f := &fake{react: issues(inTurn(ok(`[{"status":200,"body":` + usageBody + `},` +
		`{"status":403,"body":` + refusal(403, "session_limit_reached", limitMembers).body + `},` +
		`{"status":503,"body":` + refusal(503, "outcome_unknown").body + `},{"status":200,"body":null}]`)))}
	agent := newClient(t, f, client.Options{}).Agent("a1", "s")
	actions := []client.SessionCharge{
		{SessionID: "s1", Charge: client.Charge{ActionType: "search", Value: 1_500_000}},
		{SessionID: "s2", Charge: client.Charge{Count: 5}},
		{SessionID: "s3"}, {SessionID: "s4"},
	}
	results := must(agent.ChargeMany(t.Context(), actions, client.BatchOptions{IdempotencyKey: "batch-1"}))(t)
	var limit *client.LimitReached
	if results[0].Err != nil || results[0].Usage != usage || !errors.As(results[1].Err, &limit) || limit.Usage != usage ||
		!errors.Is(results[2].Err, client.ErrOutcomeUnknown) || !errors.Is(results[3].Err, client.ErrOutcomeUnknown) {
		t.Errorf("%+v", results)
	}
	want := `{"actions":[{"session_id":"s1","action_type":"search","value_usd":1.5},{"session_id":"s2","count":5},` +
		`{"session_id":"s3"},{"session_id":"s4"}]}`
	if got := f.to("/v1/actions")[0]; got.body != want || got.header.Get("Idempotency-Key") != "batch-1" {
		t.Errorf("sent %s with key %q", got.body, got.header.Get("Idempotency-Key"))
	}
	if _, err := agent.ChargeMany(t.Context(), actions[:2], client.BatchOptions{}); !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("four results for two actions: %v", err)
	}
}

func TestListsOfTheServiceHavePages(t *testing.T) {
	t.Parallel()
	o := organization()
	agent := agentOf(o)
	var made []string
	for range 105 { // a page has 100
		made = append(made, sessionOf(o, agent, client.SessionParams{}).ID())
	}
	slices.Reverse(made)
	for _, sessions := range []iter.Seq2[client.SessionSummary, error]{
		o.Sessions(t.Context(), client.SessionFilter{AgentID: agent.ID(), Status: "active"}), agent.Sessions(t.Context(), client.SessionFilter{}),
	} {
		if got := collect(t, sessions, sessionID); !slices.Equal(got, made) {
			t.Errorf("%d sessions, want %d, newest first", len(got), len(made))
		}
	}
}

func sessionID(s client.SessionSummary) string { return s.ID }

func collect[T any](t *testing.T, list func(func(T, error) bool), id func(T) string) (ids []string) {
	t.Helper()
	for element, err := range list {
		noError(t, err)
		ids = append(ids, id(element))
	}
	return ids
}
