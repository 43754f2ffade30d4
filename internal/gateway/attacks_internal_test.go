package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"remit/client"
	"remit/money"
	"remit/test/suite"
)

// chatCost is what chatAnswer costs.
const chatCost = money.MicroUSD(36)

// However a request is framed, the provider gets as many calls as are held for, or none.
func TestNoFramingOfARequestSmugglesACall(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: chatAnswer}
	w := newWorld(t, "", p)
	body := bodyFor(chatPath, "")
	length := "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	post, free := "POST "+chatPath+" HTTP/1.1", "GET /openai/models HTTP/1.1"
	spends := p.calls.Load
	for name, test := range map[string]struct {
		first, lines, body string
		want               string // statuses, and calls
	}{
		"as usual":                      {post, length, body, "[200] 1"},
		"chunked":                       {post, "Transfer-Encoding: chunked\r\n", chunk, "[200] 1"},
		"HTTP/1.0":                      {"POST " + chatPath + " HTTP/1.0", length, body, "[200] 1"},
		"HTTP/1.0, chunked":             {"POST " + chatPath + " HTTP/1.0", "Transfer-Encoding: chunked\r\n", chunk, "[400] 0"},
		"another host in the URI":       {"POST http://evil.example" + chatPath + " HTTP/1.1", length, body, "[200] 1"},
		"two lengths":                   {post, length + "Content-Length: 5\r\n", body, "[400] 0"},
		"a length and chunks":           {post, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunk + body, "[200] 1"},
		"chunks twice":                  {post, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunk, "[501] 0"},
		"chunks and another coding":     {post, "Transfer-Encoding: chunked, identity\r\n", chunk, "[501] 0"},
		"a coding that is none":         {post, "Transfer-Encoding: xchunked\r\n", chunk, "[501] 0"},
		"a space before the colon":      {post, "Transfer-Encoding : chunked\r\n" + length, body, "[400] 0"},
		"a chunk that is shorter":       {post, "Transfer-Encoding: chunked\r\n", "fff\r\n" + body + "\r\n0\r\n\r\n", "[400] 0"},
		"a length that is too long":     {post, "Content-Length: 5000\r\n", body, "[400] 0"},
		"a length that is too short":    {post, "Content-Length: 20\r\n", body, "[400] 0"},
		"a negative length":             {post, "Content-Length: -1\r\n", body, "[400] 0"},
		"two hosts":                     {post, "Host: evil.example\r\n" + length, body, "[400] 0"},
		"a request in a body":           {free, length, body, "[400] 0"},
		"a body that may come":          {post, "Expect: 100-continue\r\n" + length, body, "[100 200] 1"},
		"something else that may come":  {post, "Expect: 200-ok\r\n" + length, body, "[417] 0"},
		"a tunnel":                      {"CONNECT api.openai.com:443 HTTP/1.1", "", "", "[404] 0"},
		"all of the server":             {"OPTIONS * HTTP/1.1", "", "", "[404] 0"},
		"a path that is a query":        {"POST ?x=" + chatPath + " HTTP/1.1", length, body, "[400] 0"},
		"an encoded path":               {"POST /openai/chat%2fcompletions HTTP/1.1", length, body, "[404] 0"},
		"a path back, encoded":          {"POST /openai/models/%2e%2e/chat/completions HTTP/1.1", length, body, "[404] 0"},
		"a parameter in the path":       {"POST /openai;x/chat/completions HTTP/1.1", length, body, "[404] 0"},
		"a backslash":                   {`POST /openai\chat\completions HTTP/1.1`, length, body, "[404] 0"},
		"a parameter at its end":        {"POST " + chatPath + ";jsessionid=1 HTTP/1.1", length, body, "[404] 0"},
		"a query with semicolons":       {"POST " + chatPath + "?api-version=1;key=2 HTTP/1.1", length, body, "[400] 0"},
		"two queries":                   {"POST " + chatPath + "?api-version=1?key=2 HTTP/1.1", length, body, "[400] 0"},
		"the path under another header": {free, "X-Original-URL: " + chatPath + "\r\nX-Rewrite-URL: " + chatPath + "\r\n", "", "[200] 1"}, // the free one
		"another method, underscored":   {post, "X_HTTP_Method_Override: DELETE\r\n" + length, body, "[400] 0"},
		"a long header":                 {post, "X-Long: " + strings.Repeat("x", 64<<10) + "\r\n" + length, body, "[431] 0"},
	} {
		before := spends()
		a := w.rich()
		c := w.dial()
		go func() {
			_, _ = io.WriteString(c, a.aCall(test.first, test.lines, test.body))
			if strings.HasPrefix(test.want, "[400]") { // no more comes; a client that ends before its answer has hung up
				_ = c.(*net.TCPConn).CloseWrite()
			}
		}()
		got, err := statusesOn(c)
		if summary := fmt.Sprint(got, spends()-before); summary != test.want || err != nil && len(got) == 0 {
			t.Errorf("%s: %s %v, want %s", name, summary, err, test.want)
		}
		if calls := spends() - before; test.first == free {
			a.spent(0)
		} else {
			eventually(t, name, func() bool { used, held := a.usage(); return used == money.MicroUSD(calls)*chatCost && held == 0 })
		}
		if p.header.Get("X-Original-Url") != "" {
			t.Errorf("%s: it is passed on", name)
		}
	}
}

// Requests that are sent before the answers come are held for one by one.
func TestEveryPipelinedCallIsHeldFor(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: chatAnswer}
	w := newWorld(t, "", p)
	a := w.newAgent(client.SessionParams{MaxValue: new(money.USD), MaxActions: 3})
	body := bodyFor(chatPath, "")
	one := strings.Replace(a.aCall("POST "+chatPath+" HTTP/1.1", "Content-Length: "+strconv.Itoa(len(body))+"\r\n", body), "close", "keep-alive", 1)
	c := w.dial()
	_, _ = io.WriteString(c, strings.Repeat(one, 5))
	_ = c.(*net.TCPConn).CloseWrite()
	if got, err := statusesOn(c); fmt.Sprint(got) != "[200 200 200 402 402]" || err != nil || p.calls.Load() != 3 {
		t.Errorf("%v, %v, %d calls", got, err, p.calls.Load())
	}
	a.spent(3 * chatCost)
}

// Servers read bodies differently. One that some server could read as a call that costs more is refused.
func TestABodyMeansTheSameToEveryServer(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: chatAnswer}
	w := newWorld(t, "", p)
	a := w.rich()
	long := strings.Repeat("m", 200_000)
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"a long name twice":               {`{"` + long + `":1,"` + long + `":2}`, 400},
		"a name in capitals":              {bodyFor(chatPath, `,"N":100`), 400},
		"one that folds to another":       {bodyFor(chatPath, `,"max_to`+"\u212a"+`ens":100000`), 400},
		"one that ends at a NUL":          {bodyFor(chatPath, `,"n\u0000":100`), 400},
		"one with half a character":       {bodyFor(chatPath, `,"n\ud800":100`), 400},
		"a name of nothing":               {bodyFor(chatPath, `,"":1`), 400},
		"no UTF-8":                        {bodyFor(chatPath, ",\"user\":\"\xff\""), 400},
		"UTF-16":                          {"\xff\xfe{\x00}\x00", 400},
		"a mark of the order of bytes":    {"\ufeff" + bodyFor(chatPath, ""), 400},
		"two objects":                     {bodyFor(chatPath, "") + bodyFor(chatPath, ""), 400},
		"more after it":                   {bodyFor(chatPath, "") + "]", 400},
		"a comment":                       {"/**/" + bodyFor(chatPath, ""), 400},
		"too deep":                        {bodyFor(chatPath, `,"x":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)), 400},
		"much too deep":                   {strings.Repeat(`{"a":`, 100_000), 400},
		"not a number":                    {bodyFor(chatPath, `,"n":NaN`), 400},
		"a thousand million answers":      {bodyFor(chatPath, `,"n":1e9`), 402},
		"a model with control characters": {`{"model":"plain\u0000\u001b[2J\r\n","max_tokens":9,"messages":[]}`, 404},
		"a model of another case":         {`{"model":"PLAIN","max_tokens":9,"messages":[]}`, 404},
		"very many values":                {`{"model":"plain","messages":[` + strings.Repeat("0,", mostValues) + `0]}`, 413},
	} {
		got := a.post(chatPath, test.body)
		if got.StatusCode != test.status || got.code(t) == "" || len(got.body) > 2000 || strings.Contains(got.body, "\x1b") {
			t.Errorf("%s: %d %.500s", name, got.StatusCode, got.body)
		}
	}
	if p.calls.Load() != 0 {
		t.Errorf("%d calls", p.calls.Load())
	}
	a.spent(0)
	// Of two limits the higher one is held for, because servers differ in which they heed.
	body := bodyFor(chatPath, `,"max_completion_tokens":1`)
	want := money.MicroUSD((5*len(body)+1)/2 + 8*40) // a token for each byte, at most written to the cache, and forty of output
	if got := a.post(chatPath, body); got.StatusCode != 200 || a.lastHold() != want {
		t.Errorf("two limits: %d, held %s, want %s", got.StatusCode, a.lastHold(), want)
	}
}

// A header by which a server could read the body or bill the call otherwise does not pass.
func TestNoHeaderChangesWhatACallMeans(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: chatAnswer}
	w := newWorld(t, "", p)
	a := w.rich()
	r := a.request("POST", chatPath, bodyFor(chatPath, ""))
	r.Header["Content-Type"] = []string{"application/json; charset=utf-7", "multipart/form-data; boundary=x"}
	r.Header["Content-Encoding"] = []string{"identity", "br"}
	forged := []string{
		"X_Api_Key", "OpenAI_Organization", "X_Forwarded_For", "X_Remit_Session", "X-Goog-User-Project", "X-Vertex-AI-LLM-Shared-Request-Type", "Content-Encoding",
	}
	for _, name := range forged[:6] {
		r.Header[name] = []string{"forged"}
	}
	if got := a.do(r); got.StatusCode != 415 {
		t.Errorf("two codings: %d %s", got.StatusCode, got.body)
	}
	r = r.Clone(t.Context())
	r.Body, r.Header["Content-Encoding"] = io.NopCloser(strings.NewReader(bodyFor(chatPath, ""))), []string{"identity"}
	if got := a.do(r); got.StatusCode != 200 || fmt.Sprint(p.header["Content-Type"]) != "[application/json]" {
		t.Errorf("%d %s, content type %q", got.StatusCode, got.body, p.header["Content-Type"])
	}
	for _, name := range forged {
		for seen := range p.header {
			if strings.EqualFold(seen, name) {
				t.Errorf("the provider sees %s", seen)
			}
		}
	}
}

// Where organizations share a provider's account, no one reaches what another keeps there, not even its size.
func TestNoOrganizationReachesWhatAnotherKeepsAtTheProvider(t *testing.T) {
	t.Parallel()
	p := &recorded{answer: chatAnswer}
	w := newWorld(t, "", p)
	a := w.rich()
	const file = `{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"file","file_id":"file_1"}}]}`
	for _, of := range [][2]string{ // a call, and a body: client/wire's tests have all that can refer to something
		{responsesPath, bodyFor(responsesPath, `,"previous_response_id":"resp_1"`)},
		{"/openai/responses/input_tokens", bodyFor(responsesPath, `,"Conversation":"conv_1"`)},
		{messagesPath, `{"model":"plain","max_tokens":9,"messages":[{"role":"user","content":[` + file + `]}]}`},
		{messagesPath + "/count_tokens", `{"model":"plain","messages":[{"role":"user","content":[` + file + `]}]}`},
	} {
		if got := a.post(of[0], of[1]); got.StatusCode != 400 || got.code(t) != "invalid_request" {
			t.Errorf("%s: %d %s", of, got.StatusCode, got.body)
		}
	}
	if p.calls.Load() != 0 {
		t.Errorf("%d calls", p.calls.Load())
	}
	a.spent(0)
}

// Two names for one key of a provider are one account.
func TestAKeyUnderTwoNamesIsShared(t *testing.T) {
	t.Parallel()
	_, first, _ := strings.Cut(goodConfig, "upstreams:\n")
	second := strings.NewReplacer("name: openai", "name: other", "000000000001", "000000000002")
	same := strings.NewReplacer("name: openai", "name: other")
	for more, want := range map[string]bool{"": false, same.Replace(first): false, second.Replace(first): true} {
		s := must(readSettings(newFolder(t, goodConfig+more)))(t)
		if got := s.upstreams["openai"].isShared(); got != want {
			t.Errorf("with %q: %t", more, got)
		}
	}
}

// Whatever becomes of its caller meanwhile, a call costs what it costs. That an agent settles, renews or changes nothing that the gateway
// holds for it is proven in package server: TestNoAgentSettlesWhatTheGatewayHolds.
func TestACallCostsTheSameWhateverItsAgentDoesMeanwhile(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	p := &recorded{answer: func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-end
		chatAnswer(w, r)
	}}
	w := newWorld(t, "", p)
	for _, meanwhile := range []string{"nothing", "its session ends", "its session is suspended", "its tokens are revoked"} {
		a := w.rich()
		key := a.key()
		first := make(chan answer, 1)
		go func() { first <- a.post(chatPath, bodyFor(chatPath, ""), "Authorization", "Bearer "+key) }()
		<-began
		switch meanwhile {
		case "its session ends":
			suite.NoError(t, w.admin.EndSession(t.Context(), a.session))
		case "its session is suspended":
			must(w.admin.SuspendSession(t.Context(), a.session, "a look"))(t)
		case "its tokens are revoked":
			for _, one := range must(w.admin.SessionKeys(t.Context(), a.session))(t) {
				suite.NoError(t, w.admin.DeleteSessionKey(t.Context(), a.session, one.ID))
			}
		}
		end <- struct{}{}
		if got := <-first; got.StatusCode != 200 {
			t.Errorf("%s: %d %s", meanwhile, got.StatusCode, got.body)
		}
		a.spent(chatCost)
		if meanwhile != "nothing" {
			if got := a.post(chatPath, bodyFor(chatPath, ""), "Authorization", "Bearer "+key); got.StatusCode < 400 {
				t.Errorf("%s, and then: %d", meanwhile, got.StatusCode)
			}
		}
	}
}
