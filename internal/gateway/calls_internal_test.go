package gateway

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/test/fakeprovider"
	"remit/test/suite"
)

func TestACallCostsWhatTheProvidersLedgerSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	for path := range formats {
		for _, more := range []string{"", `,"stream":true`} {
			for _, fake := range []string{"seed=1", "seed=2,chunks=odd", "seed=3,tools=1", "seed=5,reasoning=1,cached=1", "seed=7,cached=hour", "seed=8,usage=choices"} {
				a := w.rich()
				before := w.ledger("plain")
				got := a.post(path, bodyFor(path, more), "X-Fake", fake)
				isHidden := path == chatPath && more != "" && fake != "seed=8,usage=choices" // beside choices it passes
				if got.StatusCode != 200 || got.err != nil || got.Header.Get("X-Remit-Remaining-Value-Usd") == "" || isHidden && strings.Contains(got.body, `"prompt_tokens"`) {
					t.Errorf("%s %s %s: %d %v %v %s", path, more, fake, got.StatusCode, got.err, got.Header, got.body)
				}
				a.reconciles(before)
			}
		}
	}
	if ledger := w.provider.Ledger(); len(ledger) != 36 {
		t.Errorf("%d calls", len(ledger))
	}
}

// recorded answers as a function does, and keeps the header and body of what came.
type recorded struct {
	answer func(w http.ResponseWriter, r *http.Request)
	calls  atomic.Int64
	header http.Header
	body   string
	path   string
	major  int // of HTTP
}

func (p *recorded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.header, p.body, p.path, p.major = r.Header.Clone(), string(body), r.URL.RequestURI(), r.ProtoMajor
	p.calls.Add(1)
	r.Body = io.NopCloser(strings.NewReader(p.body))
	p.answer(w, r)
}

const wholeChat = `{"id":"x","model":"plain","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`

func chatAnswer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, wholeChat)
}

func TestHeadersOfTheClientAndOfTheProviderStopAtTheGateway(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Set-Cookie": "a=b", "OpenAI-Organization": "org-1", "X-Remit-Remaining-Value-Usd": "999", "X-Remit-Would-Refuse": "x", "Access-Control-Allow-Origin": "*",
			"X-Request-Id": "req_1", "X-Ratelimit-Remaining-Requests": "7", "Location": "https://elsewhere", "Www-Authenticate": "Bearer realm=provider",
		} {
			w.Header().Set(name, value)
		}
		chatAnswer(w, r)
	}}
	w := newWorld(t, "", p)
	a := w.rich()
	forged := []string{
		"Cookie", "c=d", "OpenAI-Organization", "org-2", "OpenAI-Project", "proj", "X-Forwarded-For", "1.2.3.4", "Forwarded", "for=1.2.3.4", "X-Real-Ip", "1.2.3.4",
		"X-Remit-Max-Tokens", "5", "Proxy-Authorization", "Basic x", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Te", "trailers",
		"Connection", "X-Hop", "X-Hop", "hop", "Accept-Encoding", "gzip", "DPoP", "proof",
	}
	got := a.post(chatPath, bodyFor(chatPath, ""), append(forged, "OpenAI-Beta", "responses=v1", "Idempotency-Key", "key-1", "X-Stainless-Lang", "js", "User-Agent", "OpenAI/JS")...)
	if got.StatusCode != 200 || got.Header.Get("X-Request-Id") != "req_1" || got.Header.Get("X-Ratelimit-Remaining-Requests") != "7" {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
	for _, name := range []string{"Set-Cookie", "Openai-Organization", "X-Remit-Would-Refuse", "Access-Control-Allow-Origin", "Location", "Www-Authenticate"} {
		if got.Header.Get(name) != "" {
			t.Errorf("the client sees %s: %s", name, got.Header.Get(name))
		}
	}
	if left := got.Header.Get("X-Remit-Remaining-Value-Usd"); left == "999" || left == "" {
		t.Errorf("it has %q left", left)
	}
	if left := got.Trailer.Get("X-Remit-Remaining-Value-Usd"); left != "0.999964" {
		t.Errorf("after the call it has %q left", left)
	}
	for i := 0; i < len(forged); i += 2 {
		if value := p.header.Get(forged[i]); value != "" && forged[i] != "Accept-Encoding" {
			t.Errorf("the provider sees %s: %s", forged[i], value)
		}
	}
	want := map[string]string{"Authorization": "Bearer " + providerKey, "Accept-Encoding": "identity", "Openai-Beta": "responses=v1", "Idempotency-Key": "key-1", "X-Stainless-Lang": "js", "User-Agent": "OpenAI/JS"}
	for name, value := range want {
		if len(p.header.Values(name)) != 1 || p.header.Get(name) != value {
			t.Errorf("the provider sees %s: %q", name, p.header.Values(name))
		}
	}
	if p.path != "/v1/chat/completions" || p.calls.Load() != 1 {
		t.Errorf("%s, %d calls", p.path, p.calls.Load())
	}
}

func TestOneCredentialUnderAnyOfThreeNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	a := w.rich()
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
		value := a.token
		if name == "Authorization" {
			value = "bearer " + value
		}
		if got := a.post(messagesPath, bodyFor(messagesPath, ""), "Authorization", "", name, value); got.StatusCode != 200 {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
		}
	}
	other := w.newAgent(client.SessionParams{})
	bound := w.tokenOf(client.AgentOptions{DPoP: must(client.GenerateKey(client.EdDSA))(t)})
	forOthers := w.tokenOf(client.AgentOptions{Resource: []string{"https://other.example"}})
	key := a.key()
	for _, test := range []struct {
		headers []string
		status  int
		says    string
	}{
		{[]string{"X-Api-Key", a.token}, 400, "more than one"},
		{[]string{"Api-Key", "x"}, 400, "more than one"},
		{[]string{"Authorization", ""}, 401, "set the API key"},
		{[]string{"Authorization", "Basic eDp5"}, 401, "must be Bearer"},
		{[]string{"Authorization", "Bearer rmk_" + a.org}, 401, "API key of an organization"},
		{[]string{"Authorization", "Bearer " + providerKey}, 401, "provider's key"},
		{[]string{"Authorization", "Bearer " + a.token[:len(a.token)-4] + "AAAA"}, 401, "invalid_token"},
		{[]string{"Authorization", "Bearer " + bound}, 401, "bound to a key"},
		{[]string{"Authorization", "DPoP " + bound, "DPoP", "proof"}, 401, "must be Bearer"},
		{[]string{"Authorization", "Bearer " + forOthers}, 401, "has the issuer in aud"},
		{[]string{"Authorization", "Bearer " + key[:len(key)-4] + "AAAA", "X-Remit-Session", ""}, 401, "invalid_token"},
		{[]string{"Authorization", "Bearer " + key, "X-Remit-Session", other.session}, 404, "not_found"},
		{[]string{"X-Remit-Session", ""}, 400, "X-Remit-Session"},
		{[]string{"X-Remit-Session", "mine"}, 400, "X-Remit-Session"},
		{[]string{"X-Remit-Session", other.session}, 404, "not_found"},
	} {
		got := a.post(chatPath, bodyFor(chatPath, ""), test.headers...)
		if got.StatusCode != test.status || !strings.Contains(got.body, test.says) || got.code(t) == "" || strings.Contains(got.body, a.token) {
			t.Errorf("%v: %d %s", test.headers, got.StatusCode, got.body)
		}
	}
	if calls := len(w.provider.Ledger()); calls != 3 {
		t.Errorf("%d calls", calls)
	}
}

func TestAStreamPassesEventByEvent(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	p := &recorded{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"model":"plain","choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"model":"plain","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"model":"plain","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, `[DONE]`,
		} {
			_, _ = io.WriteString(w, "data: "+event+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}}
	w := newWorld(t, "", p)
	a := w.rich()
	read := bufio.NewReader(a.stream().Body)
	var text string
	for range 2 {
		for range 2 {
			text += must(read.ReadString('\n'))(t) // before the provider sends more
		}
		next <- struct{}{}
	}
	if used, held := a.usage(); used != 0 || held == 0 || strings.Contains(text, "usage") {
		t.Errorf("in the middle it has used %s and holds %s: %s", used, held, text)
	}
	suite.NoError(t, w.admin.EndSession(t.Context(), a.session)) // the call goes on
	next <- struct{}{}                                           // the usage is not shown
	if line := must(read.ReadString('\n'))(t); line != "data: [DONE]\n" {
		t.Errorf("then came %q", line)
	}
	a.spent(28) // settled before the last event was passed on, while the provider's answer goes on
	next <- struct{}{}
	rest := must(io.ReadAll(read))(t)
	if string(rest) != "\n" {
		t.Errorf("at the end came %q", rest)
	}
}

// The certificate of httptest's servers, which is in no pool of the system, serves both sides here.
func TestTheGatewaySpeaksTLSAndHTTP2OnBothSides(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: new(fakeprovider.Provider).ServeHTTP}
	provider := httptest.NewUnstartedServer(p)
	provider.EnableHTTP2 = true
	provider.StartTLS()
	t.Cleanup(provider.Close)
	pool := x509.NewCertPool()
	pool.AddCert(provider.Certificate())
	w := &world{base: provider.URL}
	w.start(t, func() string {
		w.keepPair(provider.TLS.Certificates[0])
		return w.config("tls: {cert_file: cert.pem, key_file: key.pem}", `["*"]`)
	}, func(g *Gateway) { g.transport.TLSClientConfig = &tls.Config{RootCAs: pool} })
	w.url = strings.Replace(w.url, "http:", w.gateway.Scheme()+":", 1)
	for _, most := range []int{1, 2} {
		a := w.rich()
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}, ForceAttemptHTTP2: most == 2}
		r := a.request("POST", responsesPath, bodyFor(responsesPath, `,"stream":true`), "Te", "trailers")
		got := must(transport.RoundTrip(r))(t)
		body, err := io.ReadAll(got.Body)
		got.Body.Close()
		transport.CloseIdleConnections()
		if used, held := a.usage(); got.ProtoMajor != most || p.major != 2 || err != nil || !strings.Contains(string(body), "event: response.") || used == 0 || held != 0 ||
			got.Trailer.Get("X-Remit-Remaining-Value-Usd") != (money.USD-used).String() {
			t.Errorf("HTTP/%d, upstream HTTP/%d: %s %v %v, used %s, holds %s: %s", most, p.major, got.Proto, got.Trailer, err, used, held, body)
		}
	}
}

// The price is that of the model that has answered. What that costs beyond the hold is spent, and the log says that the bound is wrong.
func TestAnotherModelThatAnswersHasItsOwnPrice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", &recorded{answer: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Replace(wholeChat, "plain", "dear", 1))
	}})
	a := w.rich()
	a.post(chatPath, bodyFor(chatPath, ""))
	a.spent(10*200 + 2*800)
	for _, part := range []string{"a call cost more than was held", "model=plain", "cost_usd=0.0036"} {
		if !strings.Contains(w.logs.String(), part) {
			t.Errorf("the log lacks %q: %s", part, w.logs)
		}
	}
}

func TestEmbeddingsCostTheirInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	a := w.rich()
	got := a.post("/openai/v1/embeddings", `{"model":"embeds","input":["`+strings.Repeat(prompt, 100)+`","`+prompt+`"]}`, "X-Fake", "seed=3")
	if got.StatusCode != 200 || !strings.Contains(got.body, `"embedding"`) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	eventually(t, "it costs what the ledger says", func() bool {
		used, held := a.usage()
		return used > 0 && used == w.ledger("embeds") && held == 0
	})
}

// A deadline by which one answer had to be written is none of the next answer on the connection.
func TestACallOnAConnectionThatWasUsedMayTakeItsTime(t *testing.T) {
	t.Parallel()
	calls := 0
	p := &recorded{answer: func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls > 1 {
			<-time.After(1200 * time.Millisecond) // longer than idle_seconds, which only an answer that has begun is held to
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"model\":\"plain\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
	}}
	w := newWorld(t, "idle_seconds: 1", p)
	a := w.rich()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for range 2 {
		got := must(transport.RoundTrip(a.request("POST", chatPath, bodyFor(chatPath, `,"stream":true`))))(t)
		body, err := io.ReadAll(got.Body)
		if got.Body.Close(); err != nil || string(body) != "data: [DONE]\n\n" {
			t.Errorf("%v: %q", err, body)
		}
	}
	a.spent(2 * 28)
}
