package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/test/suite"
)

func TestWhatIsInDoubtIsSpentAndWhatFailsIsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	for _, test := range []struct {
		fake, more string
		status     int
		isHeld     bool // all that was held is spent
		isCut      bool // the client sees that the answer is not whole
	}{
		{"error=429,retry=7", "", 429, false, false},
		{"error=400", `,"stream":true`, 400, false, false},
		{"error=500", "", 500, false, false},
		{"error=504", "", 504, true, false},
		{"error=529", "", 529, false, false},
		{"error=midway", `,"stream":true`, 200, true, false},
		{"error=first", `,"stream":true`, 200, true, false},
		{"cut=midway", `,"stream":true`, 200, true, true},
		{"cut=midway", "", 200, true, true},
		{"usage=missing", "", 200, true, false},
		{"usage=missing", `,"stream":true`, 200, true, false},
		{"usage=null", "", 200, true, false},
		{"usage=zero", "", 200, true, false},
		{"usage=negative", `,"stream":true`, 200, true, false},
	} {
		for path := range formats {
			a := w.rich()
			got, what := a.post(path, bodyFor(path, test.more), "X-Fake", test.fake), path+" "+test.fake+test.more
			if got.StatusCode != test.status || (got.err != nil) != test.isCut || got.StatusCode == 429 && got.Header.Get("Retry-After") != "7" {
				t.Errorf("%s: %d %v %s", what, got.StatusCode, got.err, got.body)
			}
			if test.isHeld {
				a.paidTheHold(what)
			} else {
				a.spent(0)
			}
		}
	}
}

func TestAnAnswerIsReadOnWhenItsClientHangsUp(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 10)
	var w *world
	w = newWorld(t, "", http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		w.provider.ServeHTTP(to, r)
	}))
	for _, more := range []string{"", `,"stream":true`} {
		for path := range formats {
			a := w.rich()
			before := w.ledger("plain")
			ctx, hangUp := context.WithCancel(t.Context())
			r := a.request("POST", path, bodyFor(path, more), "X-Fake", "seed=13,pace=2").WithContext(ctx)
			if more == "" {
				go func() { <-arrived; hangUp() }() // before the first byte
			}
			if got, err := a.open(r); err == nil {
				_, _ = io.ReadFull(got.Body, make([]byte, 100))
			}
			hangUp()
			a.reconciles(before)
		}
	}
}

// A client that hangs up while its call is held for pays nothing: the answer would have no reader.
func TestNothingIsSentForAClientThatHasHungUp(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: chatAnswer}
	w := newWorld(t, "", p)
	a := w.rich()
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler || p.calls.Load() != 0 || !strings.Contains(w.logs.String(), "hung_up=true") {
			t.Errorf("%v, %d calls, %s", cause, p.calls.Load(), w.logs)
		}
		a.spent(0)
	}()
	w.gateway.ServeHTTP(httptest.NewRecorder(), a.request("POST", chatPath, bodyFor(chatPath, "")).WithContext(ctx))
}

func TestACallEndsByItsLimitsOfTimeAndThenCostsWhatWasHeld(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config, fake string
		status       int
	}{
		{"first_byte_seconds: 1", "hang=first", 504},
		{"idle_seconds: 1", "hang=midway", 200},
		{"max_seconds: 1", "endless=1,pace=5", 200},
		{"drain_seconds: 1", "endless=1,pace=5", 200}, // its client hangs up
		{"stop_seconds: 0", "endless=1,pace=5", 200},
	} {
		t.Run(test.config, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.config, nil)
			a := w.rich()
			got := a.stream("X-Fake", test.fake)
			switch test.config {
			case "drain_seconds: 1":
				_, _ = io.ReadFull(got.Body, make([]byte, 10))
				got.Body.Close()
			case "stop_seconds: 0":
				w.stop()
			}
			_, err := io.ReadAll(got.Body)
			if got.StatusCode != test.status || (err == nil) != (test.status == 504) {
				t.Errorf("%d %v", got.StatusCode, err)
			}
			a.paidTheHold(test.config)
		})
	}
}

// No more of an answer is read than its client takes. A client that takes nothing for idle_seconds has hung up; and a call ends with
// max_seconds, whichever side waits.
func TestAClientThatDoesNotReadHoldsTheProviderBackForAWhile(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"idle_seconds: 1\ndrain_seconds: 0", "max_seconds: 1"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			var written atomic.Int64
			p := &recorded{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for event := []byte("data: " + strings.Repeat("x", 100_000) + "\n\n"); ; written.Add(int64(len(event))) {
					if _, err := w.Write(event); err != nil {
						return
					}
				}
			}}
			w := newWorld(t, config, p)
			a := w.rich()
			a.stream()
			a.paidTheHold(config)
			if n := written.Load(); n > 50<<20 {
				t.Errorf("%d bytes were read for a client that reads nothing", n)
			}
		})
	}
}

func TestAPanicSpendsWhatWasHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	a := w.rich()
	w.gateway.transport.Proxy = func(*http.Request) (*url.URL, error) { panic("of a test") }
	if _, err := a.open(a.request("POST", chatPath, bodyFor(chatPath, ""))); err == nil {
		t.Error("it was answered")
	}
	a.paidTheHold("a panic")
	if !strings.Contains(w.logs.String(), "a request panicked") {
		t.Errorf("the log lacks it: %s", w.logs)
	}
}

func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	calls := 0
	p := &recorded{answer: func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls > 1 {
			panic(http.ErrAbortHandler) // ends a connection that has been used before, without an answer
		}
		chatAnswer(w, r)
	}}
	w := newWorld(t, "", p)
	w.rich().post(chatPath, bodyFor(chatPath, ""))
	a := w.rich()
	got := a.post(chatPath, bodyFor(chatPath, ""), "Idempotency-Key", "key-1")
	if got.StatusCode != 502 || got.code(t) != "upstream_unanswered" || got.Header.Get("X-Should-Retry") != "false" || p.calls.Load() != 2 {
		t.Errorf("%d %s, %d calls", got.StatusCode, got.body, p.calls.Load())
	}
	a.paidTheHold("a call without an answer")
}

func TestAProviderThatCannotBeReachedCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	gone := httptest.NewServer(nil)
	base := gone.URL
	gone.Close()
	w.base = base
	w.reconfigure(`["*"]`)
	a := w.rich()
	got := a.post(chatPath, bodyFor(chatPath, ""))
	if got.StatusCode != 502 || got.code(t) != "upstream_unreachable" || got.Header.Get("X-Should-Retry") != "true" || strings.Contains(got.body, "127.0.0.1") {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
	a.spent(0)
}

// A redirection by which a server has another do a call has used nothing; after another the call may have been done.
func TestARedirectIsNotFollowedAndACompressedAnswerCostsWhatWasHeld(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status, answer int
		coding         string
		isHeld         bool
	}{{301, 502, "", false}, {302, 502, "", false}, {303, 502, "", true}, {307, 502, "", false}, {308, 502, "", false}, {200, 200, "br", true}} {
		p := &recorded{answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/")
			if test.coding != "" {
				w.Header().Set("Content-Encoding", test.coding)
			}
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, wholeChat)
		}}
		w := newWorld(t, "", p)
		a := w.rich()
		got := a.post(chatPath, bodyFor(chatPath, ""))
		if got.StatusCode != test.answer || got.Header.Get("Location") != "" || p.calls.Load() != 1 {
			t.Errorf("%d: %d %v", test.status, got.StatusCode, got.Header)
		}
		if test.isHeld {
			a.paidTheHold(strconv.Itoa(test.status))
		} else {
			a.spent(0)
		}
	}
}

// begin begins a hold of the gateway's, as a call of the agent.
func (a agent) begin(value money.MicroUSD) *hold {
	a.t.Helper()
	now := a.gateway.source.current.Load()
	found, refused := now.find("POST", chatPath, "")
	e := &exchange{gateway: a.gateway, settings: now, request: a.request("POST", chatPath, ""), id: "of-a-test", target: found}
	if refused == nil {
		e.caller, refused = a.gateway.identify(e.request, e.id)
	}
	if refused != nil {
		a.t.Fatal(refused)
	}
	h, refused, _ := a.gateway.begin(e, "plain", value)
	if refused != nil {
		a.t.Fatal(refused)
	}
	return h
}

// A gateway that is killed settles nothing. What it held is spent when the hold expires.
func TestAHoldIsRenewedWhileItsCallGoesOnAndSpentOnceItsGatewayIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "hold_seconds: 60", nil)
	a := w.rich()
	h := a.begin(1000)
	for minutes := range 5 {
		w.redis.SetTime(time.Now().Add(time.Duration(minutes) * 45 * time.Second))
		h.renew()
	}
	if used, held := a.usage(); used != 0 || held != 1000 {
		t.Errorf("used %s, holds %s", used, held)
	}
	w.redis.SetTime(time.Now().Add(5 * time.Minute))
	a.spent(1000)
	h.renew()
	if !strings.Contains(w.logs.String(), "a hold has ended before its call") {
		t.Errorf("it was renewed: %s", w.logs)
	}
	h.settle(settlement{how: byUsage, cost: 300}) // a late settlement corrects it
	a.spent(300)
	h.settle(settlement{how: byHold}) // and there is one
	a.spent(300)
}

func TestWhatIsFreeNeedsAnActiveSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	a, over := w.newAgent(client.SessionParams{MaxValue: new(money.MicroUSD(0))}), w.newAgent(client.SessionParams{})
	suite.NoError(t, w.admin.EndSession(t.Context(), over.session))
	for _, by := range []agent{a, over} {
		for _, route := range [][3]string{
			{"GET", "/openai/models", ""}, {"GET", "/anthropic/v1/models", ""}, {"POST", "/anthropic/v1/messages/count_tokens", bodyFor(messagesPath, "")},
			{"POST", "/openai/responses/input_tokens", bodyFor(responsesPath, "")},
		} {
			got := by.do(by.request(route[0], route[1], route[2]))
			want := map[string]int{a.session: 200, over.session: 403}[by.session]
			if got.StatusCode != want {
				t.Errorf("%v: %d %s, want %d", route, got.StatusCode, got.body, want)
			}
		}
	}
	if calls := w.provider.Ledger(); len(calls) != 0 {
		t.Errorf("it was charged: %v", calls)
	}
	a.spent(0)
}
