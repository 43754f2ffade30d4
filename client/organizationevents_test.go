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
	"time"

	"remit/client"
)

const feedPath = "/v1/events"

func feedEvent(seq int) string {
	return fmt.Sprintf(`{"id":"a1:1-%d","type":"agent.changed","occurred_at":"2026-11-21T09:19:32Z","agent_id":"a1",`+
		`"actor":{"type":"api_key","id":"k1"},"request_id":"r","seq":%d,"previous_hash":"5f","of_tomorrow":[1, 2]}`, seq, seq)
}

// A reader of all events goes on after the last one that it has yielded, however long the service is away.
func TestAllEventsGoOnAfterABreak(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var asked []string
		began := time.Now()
		f := &fake{react: func(n int, r seen) reaction {
			q, _ := url.ParseQuery(r.query)
			asked = append(asked, q.Get("after")+" "+q.Get("types")+" "+q.Get("wait"))
			switch {
			case n == 1:
				return ok("[" + feedEvent(41) + "," + feedEvent(42) + "]")
			case time.Since(began) < time.Hour: // 20 minutes each: no service, connections that break, no Redis
				return []reaction{fails(errRefused), fails(errReset), refusal(503, "unavailable")}[time.Since(began)/(20*time.Minute)]
			case asked[len(asked)-2] != "43  30": // nothing for as long as the service waits
				quiet := ok("[]")
				quiet.delay = 30 * time.Second
				quiet.header = http.Header{"Link": {`<http://elsewhere.test/v1/events?limit=100&after=43>; rel="next"`}}
				return quiet
			}
			return ok("[" + feedEvent(44) + "]")
		}}
		var got []string
		for e, err := range newClient(t, f, client.Options{}).Organization("k").AllEvents(t.Context(), 40) {
			noError(t, err)
			if string(e.JSON) != feedEvent(int(e.Sequence)) || e.PreviousHash != "5f" || e.Actor.ID != "k1" {
				t.Errorf("%+v", e)
			}
			if got = append(got, e.ID); len(got) == 3 {
				break
			}
		}
		if text := strings.Join(got, " "); text != "a1:1-41 a1:1-42 a1:1-44" {
			t.Errorf("got %s", text)
		}
		for i, a := range asked {
			if i > 0 && a != "42  30" && a != "43  30" || i == 0 && a != "40  30" {
				t.Errorf("request %d asks for %s", i, a)
			}
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+5*time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

// requireEnd fails the test unless a list ends with this error at once.
func requireEnd[E any](t *testing.T, list iter.Seq2[E, error], want error) {
	t.Helper()
	turns := 0
	for _, err := range list {
		if turns++; !errors.Is(err, want) {
			t.Error(err)
		}
	}
	if turns != 1 {
		t.Errorf("%v: %d turns", want, turns)
	}
}

// Followers end with a refusal and with the context, and outlast all else. A service where too many wait returns at once; they then
// ask at most once a second. Lists end with every error.
func TestListsEndWithTheirError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		quiet := ok("[]")
		quiet.delay = 30 * time.Second
		for _, test := range []struct {
			answer      reaction
			want        error
			took        time.Duration
			least, most int // requests, with the one for a token
		}{
			{refusal(401, "invalid_api_key"), client.ErrUnauthorized, 0, 1, 4},
			{fails(errRefused), context.DeadlineExceeded, 100 * time.Second, 5, 400},
			{quiet, context.DeadlineExceeded, 100 * time.Second, 4, 5},
			{ok("[]"), context.DeadlineExceeded, 100 * time.Second, 67, 102},
		} {
			for _, follow := range []func(context.Context, *client.Client){
				func(ctx context.Context, c *client.Client) {
					requireEnd(t, c.Organization("k").AllEvents(ctx, 0), test.want)
				},
				func(ctx context.Context, c *client.Client) {
					requireEnd(t, c.Agent("a1", "s").Events(ctx, ""), test.want)
				},
			} {
				f := &fake{react: issues(inTurn(test.answer))}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
				began := time.Now()
				follow(ctx, newClient(t, f, client.Options{}))
				cancel()
				if took, n := time.Since(began), len(f.requests); took != test.took || n < test.least || n > test.most {
					t.Errorf("%v: it took %s and %d requests", test.want, took, n)
				}
			}
		}
		f := &fake{react: inTurn(fails(errRefused))}
		organization := newClient(t, f, client.Options{}).Organization("k")
		requireEnd(t, organization.ListAllEvents(t.Context(), 0), client.ErrUnavailable)
		requireEnd(t, organization.Agents(t.Context(), client.AgentFilter{}), client.ErrUnavailable)
		if n := f.count(feedPath); n != 4 {
			t.Errorf("a list asks %d times", n)
		}
	})
}
