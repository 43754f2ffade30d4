package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

// moreBody is a request for 0.1 USD more.
func moreBody(status string) string {
	body := `{"id":"r1","session_id":"s1","agent_id":"a1","status":"` + status + `","add_actions":0,"add_value_usd":0.1,"reason":"a page more",` +
		`"created_at":"2026-11-21T08:19:32.859Z"`
	switch status {
	case "approved":
		body += `,"granted_actions":0,"granted_value_usd":0.1,"decided_at":"2026-11-21T08:20:32.859Z","comment":"go on"`
	case "denied":
		body += `,"decided_at":"2026-11-21T08:20:32.859Z","comment":"too dear"`
	}
	return body + "}"
}

const (
	requestsPath = "/v1/sessions/s1/requests"
	requestPath  = requestsPath + "/r1"
)

// full refuses a charge of 0.35 USD to a session with 0.25 left.
var full = refusal(403, "session_limit_reached", `"limit":"max_value_usd","action_count":3,"max_actions":10,"value_used_usd":7.75,`+
	`"max_value_usd":8,"value_held_usd":0,"remaining_actions":7,"remaining_value_usd":0.25,"expires_at":"2026-11-21T09:19:32.859Z"`)

// organizer is a service whose session has too little left for the first charges, and where a person decides.
type organizer struct {
	*fake
	charges   []reaction // in turn; the last one for all further
	asks      []reaction
	decisions []reaction
}

func newOrganizer() *organizer {
	o := &organizer{charges: []reaction{full, ok(usageBody)}, asks: []reaction{{status: 201, body: moreBody("pending")}}, decisions: []reaction{ok(moreBody("approved"))}}
	o.fake = &fake{react: issues(func(n int, r seen) reaction {
		switch r.path {
		case requestsPath:
			return inTurn(o.asks...)(n, r)
		case requestPath:
			return inTurn(o.decisions...)(n, r)
		}
		return inTurn(o.charges...)(n, r)
	})}
	return o
}

// charge charges 0.35 USD and asks if that is too much.
func (o *organizer) charge(t *testing.T, ctx context.Context, key string) (client.Usage, error) {
	t.Helper()
	return newClient(t, o.fake, client.Options{}).Agent("a1", "s").Session("s1").Charge(ctx, client.Charge{
		Value: 350_000, OnLimit: client.Ask, Reason: "a page more", IdempotencyKey: key,
	})
}

func keyOf(r seen) string { return r.header.Get("Idempotency-Key") }

func TestAChargeAsksForWhatIsMissingAndGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := newOrganizer()
		o.decisions = []reaction{ok(moreBody("pending")), fails(errReset), refusal(503, "unavailable"), ok(moreBody("approved"))}
		if u, err := o.charge(t, t.Context(), ""); err != nil || u.RemainingActions != 7 {
			t.Fatalf("%+v, %v", u, err)
		}
		asked := o.to(requestsPath)
		if len(asked) != 1 || asked[0].body != `{"add_value_usd":0.1,"reason":"a page more"}` || keyOf(asked[0]) == "" {
			t.Errorf("asked %+v", asked)
		}
		charged := o.to(actionsPath)
		if len(charged) != 2 || charged[0].body != charged[1].body || keyOf(charged[0]) == keyOf(charged[1]) || keyOf(charged[1]) == "" {
			t.Errorf("charged %+v", charged)
		}
		for _, wait := range o.to(requestPath) {
			if wait.query != "wait=30" {
				t.Errorf("waited with %q", wait.query)
			}
		}
	})
}

func TestAChargeThatIsNotApprovedIsNotMade(t *testing.T) {
	t.Parallel()
	tooMany := refusal(403, "session_limit_reached", `"limit":"max_pending_requests"`)
	less := strings.Replace(moreBody("approved"), `"granted_value_usd":0.1`, `"granted_value_usd":0.05`, 1)
	for _, test := range []struct {
		name     string
		change   func(*organizer)
		status   string // of the request; "-": the error is another
		is       error
		says     string
		attempts int
	}{
		{"denied", func(o *organizer) { o.decisions = []reaction{ok(moreBody("denied"))} }, "denied", nil, "request for more denied: too dear", 1},
		{"not decided in time", func(o *organizer) { o.decisions = []reaction{ok(moreBody("pending"))} }, "pending", context.DeadlineExceeded, "request for more pending: ", 1},
		{"the service stays away", func(o *organizer) { o.decisions = []reaction{refusal(503, "unavailable")} }, "pending", context.DeadlineExceeded, "request for more pending: ", 1},
		{"never asked", func(o *organizer) { o.asks = []reaction{fails(errReset)} }, "", context.DeadlineExceeded, "no request for more was made: ", 1},
		{"too many requests", func(o *organizer) { o.asks = []reaction{tooMany} }, "", nil, "no request for more was made: ", 1},
		{"an older service", func(o *organizer) { o.asks = []reaction{refusal(404, "not_found")} }, "", client.ErrNotFound, "no request for more was made: ", 1},
		{"less is granted", func(o *organizer) { o.charges, o.decisions = []reaction{full}, []reaction{ok(less)} }, "-", nil, "max_value_usd: ", 2},
	} {
		runInBubble(t, test.name, func(t *testing.T) {
			o := newOrganizer()
			test.change(o)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			_, err := o.charge(t, ctx, "")
			limit, _ := errors.AsType[*client.LimitReached](err)
			if limit == nil || limit.RemainingValue != money.USD/4 || errors.Is(err, client.ErrOutcomeUnknown) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			refused, _ := errors.AsType[*client.RequestNotApproved](err)
			if refused == nil && test.status != "-" || refused != nil && refused.Request.Status != test.status || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%+v, %v", refused, err)
			}
			if n := len(o.to(actionsPath)); n != test.attempts {
				t.Errorf("%d charges were sent", n)
			}
		})
	}
}

// A session that ends before the decision refuses the charge as it always does.
func TestAnEndedSessionRefusesWhatWasAskedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := newOrganizer()
		o.charges = []reaction{full, refusal(403, "session_not_active", `"session_status":"completed"`)}
		o.decisions = []reaction{ok(moreBody("ended"))}
		_, err := o.charge(t, t.Context(), "")
		if _, is := errors.AsType[*client.SessionNotActive](err); !is {
			t.Error(err)
		}
	})
}

// No request can raise these limits. Nothing is asked for, and a batch cannot ask.
func TestOtherRefusalsAskNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []reaction{
		refusal(403, "session_limit_reached", `"limit":"max_value_usd_per_action","remaining_value_usd":0`),
		refusal(403, "session_limit_reached", `"limit":"max_committed_usd","remaining_value_usd":0`),
		refusal(403, "agent_limit_reached", `"limit":"max_value_usd_per_day"`), refusal(403, "session_suspended"),
	} {
		o := newOrganizer()
		o.charges = []reaction{answer}
		if _, err := o.charge(t, t.Context(), ""); err == nil || len(o.to(requestsPath)) != 0 {
			t.Errorf("%s: %v, asked %+v", answer.body, err, o.to(requestsPath))
		}
	}
	o, many := newOrganizer(), []client.Charge{{OnLimit: client.Ask}}
	session := newClient(t, o.fake, client.Options{}).Agent("a1", "s").Session("s1")
	if _, err := session.ChargeMany(t.Context(), many, client.BatchOptions{}); err == nil || len(o.requests) != 0 {
		t.Errorf("a batch: %v, sent %+v", err, o.requests)
	}
}

// What a lease holds is given back before anything is asked for, so only what is really missing is.
func TestALeaseGivesBackBeforeItAsks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		books := newLedger(100, 0)
		lease := books.lease(t, client.LeaseOptions{})
		for n := range 130 {
			if err := lease.Charge(t.Context(), client.Charge{OnLimit: client.Ask, Reason: "more pages"}); err != nil {
				t.Fatalf("charge %d: %v", n, err)
			}
		}
		closeLease(t, lease)
		requireUsed(t, books, 130, 0)
		if books.maxActions != 130 || books.count("ask") != 30 {
			t.Errorf("%d requests, up to %d actions", books.count("ask"), books.maxActions)
		}
	})
}

func TestABudgetIsWrittenAsItWasRead(t *testing.T) {
	t.Parallel()
	const body = `{"max_value_usd":100,"period":"none","value_reserved_usd":10,"value_used_usd":2,"remaining_usd":88,"period_started_at":null,"resets_at":null}`
	budget, err := newClient(t, &fake{react: inTurn(ok(body))}, client.Options{}).Organization("k").GetBudget(t.Context())
	if err != nil || budget.Remaining != 88*money.USD || budget.ResetsAt != nil {
		t.Errorf("%+v, %v", budget, err)
	}
	if text, err := json.Marshal(budget); err != nil || string(text) != body {
		t.Errorf("%s, %v", text, err)
	}
}
