package client_test

import (
	"errors"
	"net/http"
	"testing"

	"remit/client"
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

func TestAChargeOfManyIsInDoubtByItself(t *testing.T) {
	t.Parallel()
	f := &fake{react: issues(inTurn(ok(`[{"status":200,"body":` + usageBody + `},` +
		`{"status":503,"body":` + refusal(503, "outcome_unknown").body + `},{"status":200,"body":null}]`)))}
	agent, actions := newClient(t, f, client.Options{}).Agent("a1", "s"), []client.SessionCharge{{SessionID: "s1"}, {SessionID: "s2"}, {SessionID: "s3"}}
	results := must(agent.ChargeMany(t.Context(), actions, client.BatchOptions{IdempotencyKey: "batch-1"}))(t)
	if results[0].Err != nil || !errors.Is(results[1].Err, client.ErrOutcomeUnknown) || !errors.Is(results[2].Err, client.ErrOutcomeUnknown) {
		t.Errorf("%+v", results)
	}
	if key := keyOf(f.to("/v1/actions")[0]); key != "batch-1" {
		t.Errorf("sent with key %q", key)
	}
	if _, err := agent.ChargeMany(t.Context(), actions[:2], client.BatchOptions{}); !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("three results for two actions: %v", err)
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
