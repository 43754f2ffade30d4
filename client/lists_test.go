package client_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remit/client"
)

func TestListsFollowPages(t *testing.T) {
	t.Parallel()
	f := &fake{react: func(n int, r seen) reaction {
		page := ok(fmt.Sprintf(`[{"id":"s%d"},{"id":"s%d"}]`, 2*n-1, 2*n))
		if n < 3 {
			page.header = http.Header{"Link": {fmt.Sprintf(`<http://elsewhere.test/v1/sessions?cursor=c%%2B%d&x=1>; rel="next"`, n)}}
		}
		return page
	}}
	var got []string
	for s, err := range newClient(t, f, client.Options{}).Organization("k").Sessions(t.Context(), client.SessionFilter{Status: "active"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.ID)
	}
	if strings.Join(got, " ") != "s1 s2 s3 s4 s5 s6" {
		t.Errorf("got %q", got)
	}
	for i, want := range []string{"limit=100&status=active", "cursor=c%2B1&limit=100&status=active", "cursor=c%2B2&limit=100&status=active"} {
		if q := f.to("/v1/sessions")[i].query; q != want {
			t.Errorf("page %d asked for with %s", i+1, q)
		}
	}
}

// Proxies may add links to the service's, in the same line or in others.
func TestTheNextPageIsFoundAmongOtherLinks(t *testing.T) {
	t.Parallel()
	const following, other = `</v1/sessions?cursor=c1>; rel="next"`, `</other?cursor=no>; rel="preload"; title="a, <b>"`
	for _, links := range [][]string{
		{following}, {other, following}, {following, other}, {other + "," + following}, {following + ", " + other},
	} {
		f := &fake{react: inTurn(
			reaction{status: 200, body: `[{"id":"s1"}]`, header: http.Header{"Link": links}}, ok(`[{"id":"s2"}]`),
		)}
		sessions := newClient(t, f, client.Options{}).Organization("k").Sessions(t.Context(), client.SessionFilter{})
		for _, err := range sessions {
			if err != nil {
				t.Fatal(err)
			}
		}
		if asked := f.to("/v1/sessions"); len(asked) != 2 || asked[1].query != "cursor=c1&limit=100" {
			t.Errorf("%q: asked %d times, last with %s", links, len(asked), asked[len(asked)-1].query)
		}
	}
}

func TestAListEndsWithItsError(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(refusal(401, "invalid_api_key"))}
	turns := 0
	for _, err := range newClient(t, f, client.Options{}).Organization("k").Agents(t.Context(), client.AgentFilter{}) {
		if turns++; !errors.Is(err, client.ErrUnauthorized) {
			t.Error(err)
		}
	}
	if turns != 1 {
		t.Errorf("%d turns", turns)
	}
}

func TestEventsResumeAfterTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		f := &fake{react: issues(func(n int, r seen) reaction {
			q, _ := url.ParseQuery(r.query)
			asked = append(asked, q.Get("after")+" "+q.Get("wait"))
			switch n {
			case 1:
				return ok(`[{"id":"e1","type":"agent.created"},{"id":"e2","type":"token.issued"}]`)
			case 2:
				return fails(errReset)
			case 3: // nothing for as long as the service waits
				quiet := ok(`[]`)
				quiet.delay = 30 * time.Second
				return quiet
			}
			return ok(`[{"id":"e3","type":"session.limit_reached","actor":{"type":"agent","id":"a1"},"data":{"limit":"max_actions"}}]`)
		})}
		agent := newClient(t, f, client.Options{}).Agent("a1", "s")
		var types []string
		for e, err := range agent.Events(t.Context(), "e0") {
			if err != nil {
				t.Fatal(err)
			}
			if types = append(types, string(e.Type)); len(types) == 3 {
				if e.Actor.ID != "a1" || string(e.Data) != `{"limit":"max_actions"}` {
					t.Errorf("%+v", e)
				}
				break
			}
		}
		if got := strings.Join(types, " "); got != "agent.created token.issued session.limit_reached" {
			t.Errorf("got %s", got)
		}
		if got := strings.Join(asked, ", "); got != "e0 30, e2 30, e2 30, e2 30" {
			t.Errorf("asked for %s", got)
		}
	})
}

// Followers of an agent's events and of all events resume after an outage of any length. A service where too many wait returns at
// once; they then ask at most once a second.
func TestFollowersOutlastAnOutageAndDoNotSpin(t *testing.T) {
	t.Parallel()
	event := `"type":"agent.changed","actor":{"type":"api_key","id":"k1"},"seq":1}]`
	for name, follow := range map[string]func(context.Context, *client.Client) error{
		"of an agent": func(ctx context.Context, c *client.Client) error { return firstOf(c.Agent("a1", "s").Events(ctx, "")) },
		"all": func(ctx context.Context, c *client.Client) error {
			return firstOf(c.Organization("k").AllEvents(ctx, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, outage, polls := time.Now(), time.Hour, 0
				f := &fake{react: issues(func(int, seen) reaction {
					switch since := time.Since(began); {
					case since < outage:
						return refusal(503, "unavailable")
					case since < outage+5*time.Minute:
						polls++
						return ok(`[]`)
					}
					return ok(`[{"id":"e1",` + event)
				})}
				if err := follow(t.Context(), newClient(t, f, client.Options{})); err != nil {
					t.Error(err)
				}
				if polls < 200 || polls > 301 {
					t.Errorf("it asks %d times in 5 minutes", polls)
				}
			})
		})
	}
}

func firstOf[E any](events iter.Seq2[E, error]) error {
	for _, err := range events {
		return err
	}
	return errors.New("no events")
}

func TestEventsEndWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet := ok(`[]`)
		quiet.delay = 30 * time.Second
		agent := newClient(t, &fake{react: issues(inTurn(quiet))}, client.Options{}).Agent("a1", "s")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		began, turns := time.Now(), 0
		for _, err := range agent.Events(ctx, "") {
			if turns++; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if turns != 1 || time.Since(began) != 100*time.Second {
			t.Errorf("%d turns in %s", turns, time.Since(began))
		}
	})
}

func TestChargeManyReturnsEachResult(t *testing.T) {
	t.Parallel()
	f := &fake{react: issues(inTurn(ok(`[{"status":200,"body":` + usageBody + `},` +
		`{"status":403,"body":` + refusal(403, "session_limit_reached", limitMembers).body + `},` +
		`{"status":503,"body":` + refusal(503, "outcome_unknown").body + `}]`)))}
	agent := newClient(t, f, client.Options{}).Agent("a1", "s")
	actions := []client.SessionCharge{
		{SessionID: "s1", Charge: client.Charge{ActionType: "search", Value: 1_500_000}},
		{SessionID: "s2", Charge: client.Charge{Count: 5}},
		{SessionID: "s3"},
	}
	results, err := agent.ChargeMany(t.Context(), actions, client.BatchOptions{IdempotencyKey: "batch-1"})
	if err != nil {
		t.Fatal(err)
	}
	var limit *client.LimitReached
	if results[0].Err != nil || results[0].Usage != usage || !errors.As(results[1].Err, &limit) || limit.Usage != usage ||
		!errors.Is(results[2].Err, client.ErrOutcomeUnknown) {
		t.Errorf("%+v", results)
	}
	want := `{"actions":[{"session_id":"s1","action_type":"search","value_usd":1.5},{"session_id":"s2","count":5},{"session_id":"s3"}]}`
	if got := f.to("/v1/actions")[0]; got.body != want || got.header.Get("Idempotency-Key") != "batch-1" {
		t.Errorf("sent %s with key %q", got.body, got.header.Get("Idempotency-Key"))
	}
	if _, err := agent.ChargeMany(t.Context(), actions[:2], client.BatchOptions{}); !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("three results for two actions: %v", err)
	}
}

// No id leads to another path.
func TestIdsAreEscaped(t *testing.T) {
	t.Parallel()
	asked := ""
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.String()
		return nil, errRefused
	})
	remit, _ := client.New("http://h", client.Options{MaxAttempts: 1, HTTPClient: &http.Client{Transport: transport}})
	remit.Organization("k").GetSession(t.Context(), "../agents?x#y")
	if want := "http://h/v1/sessions/..%2Fagents%3Fx%23y"; asked != want {
		t.Errorf("%s, want %s", asked, want)
	}
}
