package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

var (
	aRead = func(ctx context.Context, c *client.Client) error {
		return second(c.Organization("k").GetSession(ctx, "s1"))
	}
	aKeyedWrite = func(ctx context.Context, c *client.Client) error {
		return second(c.Organization("k").CreateSession(ctx, client.SessionParams{AgentID: "a1"}))
	}
	aRepeatableWrite = func(ctx context.Context, c *client.Client) error { return c.Organization("k").EndSession(ctx, "s1") }
	aCreation        = func(ctx context.Context, c *client.Client) error {
		return second(c.Organization("k").CreateAgent(ctx, client.AgentParams{Name: "scout"}))
	}
	aTopUp = func(ctx context.Context, c *client.Client) error {
		return second(c.Organization("k").UpdateSession(ctx, "s1", client.SessionLimits{AddValue: money.USD}))
	}
	aTopUpWithAKey = func(ctx context.Context, c *client.Client) error {
		return second(c.Organization("k").UpdateSession(ctx, "s1", client.SessionLimits{AddValue: money.USD, IdempotencyKey: "own"}))
	}
)

func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	const all, none = 4, 1
	unavailable, unknown, limited := client.ErrUnavailable, client.ErrOutcomeUnknown, client.ErrRateLimited
	unauthorized, notFound, reused := client.ErrUnauthorized, client.ErrNotFound, client.ErrKeyReused
	redirect := reaction{status: 307, header: http.Header{"Location": {"http://elsewhere.test/"}}}
	for _, test := range []struct {
		name                                 string
		always                               reaction
		read, keyed, repeatable, keyless     int // how often each kind is sent
		readIs, keyedIs, repeatIs, keylessIs error
	}{
		{"lost answer", fails(errReset), all, all, all, none, unavailable, unknown, unknown, unknown},
		{"refused connection", fails(errRefused), all, all, all, all, unavailable, unavailable, unavailable, unavailable},
		{"unavailable", refusal(503, "unavailable"), all, all, all, all, unavailable, unavailable, unavailable, unavailable},
		{"outcome unknown", refusal(503, "outcome_unknown"), all, all, all, none, unavailable, unknown, unknown, unknown},
		{"503 of a proxy", reaction{status: 503, body: "<html>"}, all, all, all, none, unavailable, unknown, unknown, unknown},
		{"rate limited", refusal(429, "rate_limited"), all, all, all, all, limited, limited, limited, limited},
		{"500", refusal(500, "internal_error"), none, none, none, none, nil, unknown, unknown, unknown},
		{"502", reaction{status: 502}, none, none, none, none, nil, unknown, unknown, unknown},
		{"400", refusal(400, "invalid_request"), none, none, none, none, nil, nil, nil, nil},
		{"401", refusal(401, "invalid_api_key"), none, none, none, none, unauthorized, unauthorized, unauthorized, unauthorized},
		{"404", refusal(404, "not_found"), none, none, none, none, notFound, notFound, notFound, notFound},
		{"408", refusal(408, "request_timeout"), none, none, none, none, nil, nil, nil, nil},
		{"422", refusal(422, "idempotency_key_reused"), none, none, none, none, reused, reused, reused, reused},
		{"redirect", redirect, none, none, none, none, nil, nil, nil, nil},
		{"no JSON", ok("<html>"), none, none, none, none, nil, unknown, unknown, unknown},
	} {
		for _, kind := range []struct {
			name    string
			do      func(context.Context, *client.Client) error
			keyless bool // unless the caller gives a key
			sent    int
			is      error
		}{
			{"read", aRead, false, test.read, test.readIs},
			{"keyed write", aKeyedWrite, false, test.keyed, test.keyedIs},
			{"repeatable write", aRepeatableWrite, false, test.repeatable, test.repeatIs},
			{"creation", aCreation, false, test.keyed, test.keyedIs},
			{"creation without a key", aCreation, true, test.keyless, test.keylessIs},
			{"top-up", aTopUp, false, test.keyed, test.keyedIs},
			{"top-up without a key", aTopUp, true, test.keyless, test.keylessIs},
			{"top-up with its own key", aTopUpWithAKey, true, test.keyed, test.keyedIs},
		} {
			runInBubble(t, test.name+"/"+kind.name, func(t *testing.T) {
				f := &fake{react: inTurn(test.always)}
				err := kind.do(t.Context(), newClient(t, f, client.Options{NoIdempotencyKeys: kind.keyless}))
				if err == nil || len(f.requests) != kind.sent {
					t.Errorf("sent %d times, want %d: %v", len(f.requests), kind.sent, err)
				}
				if strings.HasSuffix(kind.name, "without a key") && f.requests[0].header.Get("Idempotency-Key") != "" {
					t.Error("it has a key")
				}
				for _, sentinel := range []error{unavailable, unknown, unauthorized, notFound, limited, reused} {
					if errors.Is(err, sentinel) != (sentinel == kind.is) {
						t.Errorf("is %q: %t: %v", sentinel, errors.Is(err, sentinel), err)
					}
				}
			})
		}
	}
}

// An attempt stays in doubt until the service has looked up its key.
func TestDoubtOutlastsLaterRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then    reaction
		inDoubt bool
	}{
		"answered after all":      {ok(usageBody), false},
		"refused by the budget":   {refusal(403, "session_limit_reached"), false},
		"key was reused":          {refusal(422, "idempotency_key_reused"), false},
		"unavailable":             {refusal(503, "unavailable"), true},
		"connection refused":      {fails(errRefused), true},
		"rate limited":            {refusal(429, "rate_limited"), true},
		"request came too slowly": {refusal(408, "request_timeout"), true},
		"token refused":           {refusal(401, "invalid_token"), true},
		"an ingress's 404":        {reaction{status: 404, body: "default backend - 404"}, true},
		"a proxy's JSON":          {reaction{status: 403, body: `{"error":"forbidden"}`}, true},
	} {
		runInBubble(t, name, func(t *testing.T) {
			f := &fake{react: issues(inTurn(fails(errReset), test.then))}
			_, err := newClient(t, f, client.Options{}).Agent("a1", "s").Session("s1").Charge(t.Context(), client.Charge{})
			if errors.Is(err, client.ErrOutcomeUnknown) != test.inDoubt || errors.Is(err, client.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			if _, refused := errors.AsType[*client.Problem](err); refused != (test.then.status >= 400) {
				t.Errorf("holds a problem: %t: %v", refused, err)
			}
		})
	}
}

// A call without a token was not sent, so it is not in doubt, even if the call for the token is.
func TestWithoutATokenNothingIsInDoubt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		agent, f := newAgent(t, inTurn(fails(errReset)))
		_, err := agent.Session("s1").Charge(t.Context(), client.Charge{})
		if errors.Is(err, client.ErrOutcomeUnknown) || !errors.Is(err, client.ErrUnavailable) || f.count(exchangePath) != 4 {
			t.Errorf("%d exchanges: %v", f.count(exchangePath), err)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		retryAfter  string
		deadline    time.Duration
		sent        int
		least, most time.Duration
	}{
		"seconds":                    {"7", time.Hour, 2, 7 * time.Second, 7100 * time.Millisecond},
		"a date":                     {"Sat, 01 Jan 2000 00:00:09 GMT", time.Hour, 2, 9 * time.Second, 9100 * time.Millisecond},
		"none":                       {"", time.Hour, 2, 0, 100 * time.Millisecond},
		"nonsense":                   {"soon", time.Hour, 2, 0, 100 * time.Millisecond},
		"in the past":                {"-5", time.Hour, 2, 0, 100 * time.Millisecond},
		"longer than a caller waits": {"31", time.Hour, 1, 0, 0},
		"longer than any number":     {strings.Repeat("9", 30), time.Hour, 1, 0, 0},
		"longer than the caller":     {"7", 5 * time.Second, 1, 0, 0},
	} {
		runInBubble(t, name, func(t *testing.T) {
			limited := refusal(429, "rate_limited")
			limited.header = http.Header{"Retry-After": {test.retryAfter}}
			f := &fake{react: inTurn(limited, ok(`{"id":"s1"}`))}
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			began := time.Now() // midnight of 2000-01-01 UTC, in a bubble
			err := aRead(ctx, newClient(t, f, client.Options{}))
			if took := time.Since(began); took < test.least || took > test.most || len(f.requests) != test.sent {
				t.Errorf("sent %d times in %s: %v", len(f.requests), took, err)
			}
			if (err != nil) != (test.sent == 1) || err != nil && !errors.Is(err, client.ErrRateLimited) {
				t.Error(err)
			}
		})
	}
}

// Retries end with the caller's context, and the error wraps both causes.
func TestRetriesEndWithTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		busy := refusal(503, "unavailable")
		busy.header = http.Header{"Retry-After": {"2"}}
		f := &fake{react: inTurn(busy)}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := aRead(ctx, newClient(t, f, client.Options{}))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, client.ErrUnavailable) || len(f.requests) != 1 {
			t.Errorf("sent %d times: %v", len(f.requests), err)
		}
		if err := aKeyedWrite(ctx, newClient(t, f, client.Options{})); !errors.Is(err, context.Canceled) || len(f.requests) != 1 {
			t.Errorf("with a context that had ended, sent %d times: %v", len(f.requests)-1, err)
		}
	})
}

func TestAnAttemptIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		silent := ok("{}")
		silent.delay = time.Hour
		began := time.Now()
		err := aRead(t.Context(), newClient(t, &fake{react: inTurn(silent)}, client.Options{MaxAttempts: 2}))
		if took := time.Since(began); !errors.Is(err, client.ErrUnavailable) || took > 21*time.Second {
			t.Errorf("%s: %v", took, err)
		}
	})
}

func TestResponsesAreBounded(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(ok(`{"id":"` + strings.Repeat("x", 1<<20) + `"}`))}
	if err := aRead(t.Context(), newClient(t, f, client.Options{})); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("%.200v", err)
	}
}

func TestBackoffGrowsWithJitter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var sums [9]time.Duration
		seen := map[time.Duration]bool{}
		const runs = 50
		for range runs {
			f := &fake{react: inTurn(refusal(503, "unavailable"))}
			if err := aRead(t.Context(), newClient(t, f, client.Options{MaxAttempts: 10})); err == nil {
				t.Fatal("no error")
			}
			for i := range sums {
				wait := f.requests[i+1].at.Sub(f.requests[i].at)
				sums[i] += wait
				seen[wait] = true
			}
		}
		// Means of full jitter are half of 100 ms · 2ⁱ, up to half of 5 s.
		for i, bound := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000} {
			mean, half := sums[i]/runs, bound*time.Millisecond/2
			if mean < half/2 || mean > half*3/2 {
				t.Errorf("mean wait %d: %s, want about %s", i+1, mean, half)
			}
		}
		if len(seen) < runs*8 {
			t.Errorf("%d different waits in %d", len(seen), runs*9)
		}
	})
}

// What a lost attempt has deleted is not there any more: that is what was asked for. What never was there is an error.
func TestADeletionWhoseResponseIsLostSucceeds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		gone := refusal(404, "not_found")
		for name, test := range map[string]struct {
			answers []reaction
			want    error
		}{
			"lost":          {[]reaction{fails(errReset), gone}, nil},
			"unknown":       {[]reaction{refusal(503, "outcome_unknown"), gone}, nil},
			"never there":   {[]reaction{gone}, client.ErrNotFound},
			"not sent":      {[]reaction{fails(errRefused), gone}, client.ErrNotFound},
			"another's 404": {[]reaction{fails(errReset), {status: 404, body: "<html>"}}, client.ErrOutcomeUnknown},
		} {
			for _, remove := range []func(*client.Organization) error{
				func(o *client.Organization) error { return o.DeleteAPIKey(t.Context(), "k1") },
				func(o *client.Organization) error { return o.DeleteWebhook(t.Context(), "w1") },
				func(o *client.Organization) error { return o.DeleteBudget(t.Context()) },
			} {
				f := &fake{react: inTurn(test.answers...)}
				if err := remove(newClient(t, f, client.Options{}).Organization("k")); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}
