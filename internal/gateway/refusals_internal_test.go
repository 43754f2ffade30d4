package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/test/suite"
)

func TestARefusalHasTheProvidersShapeAndSendsNothing(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: chatAnswer}
	w := newWorld(t, "max_body_bytes: 100000", p)
	poor, rich := w.newAgent(client.SessionParams{MaxValue: new(money.MicroUSD(20))}), w.rich()
	over, suspended, few := w.newAgent(client.SessionParams{}), w.newAgent(client.SessionParams{}), w.newAgent(client.SessionParams{MaxActions: 1})
	suite.NoError(t, w.admin.EndSession(t.Context(), over.session))
	must(w.admin.SuspendSession(t.Context(), suspended.session, "a look"))(t)
	few.post(chatPath, bodyFor(chatPath, ""))
	long := strings.Repeat("m", 195)
	for name, test := range map[string]struct {
		by     agent
		path   string
		more   string
		body   string // in place of the usual one
		header []string
		status int
		code   string
		says   string
	}{
		"what is left does not suffice":    {by: poor, status: 402, code: "session_limit_reached", says: "max_value_usd"},
		"no actions are left":              {by: few, status: 402, code: "session_limit_reached", says: "max_actions"},
		"a limit, to Codex":                {by: few, path: responsesPath, header: []string{"Originator", "codex_exec"}, status: 400, code: "session_limit_reached"},
		"a session that is over":           {by: over, status: 403, code: "session_not_active"},
		"a suspended session":              {by: suspended, status: 403, code: "session_suspended"},
		"an unknown model":                 {body: `{"model":"gpt-9","max_tokens":9,"messages":[]}`, status: 404, code: "unknown_model", says: "gpt-9"},
		"a long name":                      {body: `{"model":"` + long + `","max_tokens":9,"messages":[]}`, status: 400, code: "invalid_request", says: "194"},
		"no JSON":                          {body: `model=plain`, status: 400, code: "invalid_request"},
		"two models":                       {body: `{"model":"plain","max_tokens":9,"messages":[],"model":"thinks"}`, status: 400, code: "invalid_request", says: "twice"},
		"in the background":                {path: responsesPath, more: `,"background":true`, status: 400, code: "invalid_request", says: "background"},
		"a tool that the provider runs":    {path: responsesPath, more: `,"tools":[{"type":"web_search"}]`, status: 400, code: "invalid_request", says: "web_search"},
		"a compressed body":                {header: []string{"Content-Encoding", "gzip"}, status: 415, code: "unsupported_media_type"},
		"a form":                           {header: []string{"Content-Type", "multipart/form-data; boundary=x"}, status: 415, code: "unsupported_media_type"},
		"a large body":                     {body: `{"model":"plain","max_tokens":9,"messages":"` + strings.Repeat("x", 100_000) + `"}`, status: 413, code: "body_too_large"},
		"an upgrade":                       {header: []string{"Connection", "Upgrade", "Upgrade", "websocket"}, status: 426, code: "upgrade_refused"},
		"another method":                   {header: []string{"X-HTTP-Method-Override", "DELETE"}, status: 400, code: "invalid_request"},
		"a route that is refused":          {path: "/openai/batches", body: `{}`, status: 403, code: "route_refused"},
		"a route that the table lacks":     {path: "/openai/new/thing", body: `{}`, status: 404, code: "route_refused"},
		"an upstream that does not exist":  {path: "/unknown/v1/messages", body: `{}`, status: 404, code: "not_found"},
		"Anthropic's shape, of a limit":    {by: poor, path: messagesPath, status: 402, code: "session_limit_reached"},
		"Anthropic's shape, of a bad body": {path: messagesPath, body: `{}`, status: 400, code: "invalid_request"},
	} {
		by, path := test.by, test.path
		if by.world == nil {
			by = rich
		}
		if path == "" {
			path = chatPath
		}
		body := test.body
		if body == "" {
			body = bodyFor(path, test.more)
		}
		got := by.post(path, body, test.header...)
		if got.StatusCode != test.status || got.code(t) != test.code || !strings.Contains(got.body, test.says) || strings.Contains(got.body, prompt) {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
		}
		if retry := got.Header.Get("X-Should-Retry"); retry != "false" {
			t.Errorf("%s: x-should-retry is %q", name, retry)
		}
		if isAnthropics := strings.HasPrefix(got.body, `{"type":"error","error":{"type":`); isAnthropics != (path == messagesPath) {
			t.Errorf("%s is in another shape: %s", name, got.body)
		}
	}
	if p.calls.Load() != 1 {
		t.Errorf("%d calls", p.calls.Load())
	}
	rich.spent(0)
}

func TestACallIsFittedToWhatIsLeftUnlessItsSessionObserves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "min_output_tokens: 20", nil)
	for path := range formats {
		a := w.newAgent(client.SessionParams{MaxValue: new(money.MicroUSD(600))})
		body := strings.Replace(bodyFor(path, ""), "40", "4000", 1)
		got := a.post(path, body)
		limit, err := strconv.Atoi(got.Header.Get("X-Remit-Max-Tokens"))
		if got.StatusCode != 200 || err != nil || limit < 20 || limit > 75 {
			t.Errorf("%s: %d, limit %d, %s", path, got.StatusCode, limit, got.body)
		}
		used, held := a.usage()
		if used > 600 || held != 0 {
			t.Errorf("%s: used %s, holds %s", path, used, held)
		}
		poor := w.newAgent(client.SessionParams{MaxValue: new(money.MicroUSD(200))})
		if got := poor.post(path, body); got.StatusCode != 402 || got.Header.Get("X-Remit-Remaining-Value-Usd") != "0.0002" || !strings.Contains(got.body, "may cost up to") {
			t.Errorf("%s: %d %v %s", path, got.StatusCode, got.Header, got.body)
		}
	}
	observes := w.newAgent(client.SessionParams{MaxValue: new(money.MicroUSD(10)), Enforcement: "observe"})
	got := observes.post(chatPath, bodyFor(chatPath, ""))
	if got.StatusCode != 200 || got.Header.Get("X-Remit-Would-Refuse") != "max_value_usd" || got.Header.Get("X-Remit-Max-Tokens") != "" {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
}

func TestAnOrganizationUsesOnlyItsUpstreams(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: chatAnswer}
	w := newWorld(t, "", p)
	a := w.rich()
	w.reconfigure(`["0198c1f0-0000-7000-8000-000000000001"]`)
	if got := a.post(chatPath, bodyFor(chatPath, "")); got.StatusCode != 404 || got.code(t) != "not_found" {
		t.Errorf("another organization's: %d %s", got.StatusCode, got.body)
	}
	w.reconfigure(`["` + w.org + `"]`)
	// Alone, it may refer to what is kept at the provider; shared, nothing is kept there.
	body := bodyFor(chatPath, `,"store":true`)
	if got := a.post(chatPath, body); got.StatusCode != 200 || !strings.Contains(p.body, `"store":true`) {
		t.Errorf("alone: %d %s", got.StatusCode, p.body)
	}
	w.reconfigure(`["*"]`)
	if got := a.post(chatPath, body); got.StatusCode != 200 || !strings.Contains(p.body, `"store":false`) {
		t.Errorf("shared: %d %s", got.StatusCode, p.body)
	}
	if a.post(responsesPath, bodyFor(responsesPath, "")); !strings.Contains(p.body, `"store":false`) {
		t.Errorf("shared: %s", p.body)
	}
}

func TestPlacesAndTheStoreAndAStopRefuseSoThatClientsTryAgain(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	p := &recorded{answer: func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-end
		chatAnswer(w, r)
	}}
	w := newWorld(t, "max_streams: 1\nstop_seconds: 30", p)
	a := w.rich()
	first := make(chan answer, 1)
	go func() { first <- a.post(chatPath, bodyFor(chatPath, "")) }()
	<-began
	again := func(what string, status int, code string) {
		t.Helper()
		got := a.post(chatPath, bodyFor(chatPath, ""))
		if got.StatusCode != status || got.code(t) != code || got.Header.Get("X-Should-Retry") != "true" || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", what, got.StatusCode, got.Header, got.body)
		}
	}
	again("no place", 429, "rate_limited")
	end <- struct{}{}
	if got := <-first; got.StatusCode != 200 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	eventually(t, "the place is free", func() bool { return w.gateway.places.len() == 0 })

	w.redis.SetError("LOADING Redis is loading the dataset in memory")
	again("no store", 503, "unavailable")
	w.redis.SetError("")
	if p.calls.Load() != 1 {
		t.Errorf("%d calls", p.calls.Load())
	}

	go func() { first <- a.post(chatPath, bodyFor(chatPath, "")) }()
	<-began
	stopped := make(chan struct{})
	go func() { w.stop(); close(stopped) }()
	eventually(t, "it stops", w.gateway.isStopping)
	select {
	case <-stopped:
		t.Error("it did not wait for the call")
	case <-time.After(20 * time.Millisecond):
	}
	end <- struct{}{}
	if got := <-first; got.StatusCode != 200 || got.err != nil {
		t.Errorf("a call at the stop: %d %v", got.StatusCode, got.err)
	}
	<-stopped
	a.spent(72)
}
